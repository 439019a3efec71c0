"""Our rule: charge for dependence, which filling at once loses, and not for entropy, which it does not."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from pairmi.info import entropy_of
from pairmi.selectors.ranking import TOLERANCE, Nats, Rule, Weight, greedily, ranked, waiting_for
from pairmi.types import Charge, PairMatrix, PairwiseMI, PerPosition, Reason, Selection, Turn

Order = Literal["lowest-entropy", "information", "certain-information", "highest-entropy"]


@dataclass(frozen=True)
class MIBound(Rule):
    """Fill while the charges min(H_k, penalty * MI with members of higher entropy) + entropy_weight * H_k, the first free, fit the budget.

    Filling U at once errs by the total correlation of U. By the chain rule over U in falling entropy the first member
    is free and each other adds I(X_k; those before) <= H_k, for which the pairwise sum stands. It is an estimate, not a
    bound: three XORed bits have no pairwise information at all. `entropy_weight` charges for uncertainty itself, where a model's
    beliefs are wrong most often. `order` is who is tried first: the most confident (lowest-entropy), those that tell most about the rest
    (information; certain-information takes the certain ones before them), or the most uncertain (highest-entropy).
    With `charge`, a map learnt from measured prices, a candidate costs penalty * charge + entropy_weight * H_k after those before it, and
    the budget is nats lost a pass in the mean.
    """

    mi: PairwiseMI
    budget: Nats = 0.1
    penalty: Weight = 1.0
    order: Order = "lowest-entropy"
    entropy_weight: Weight = 0.0
    charge: Charge | None = None  # a fitted map in the place of the formula above; None = the formula
    reference: ClassVar[str] = "pairmi"

    def __call__(self, turn: Turn) -> Selection:
        """The carry is, for each position, its MI with the members of higher entropy."""
        masked, entropies = turn.prediction.masked, entropy_of(turn.prediction)
        mi = self.mi(turn.prediction, turn.backbone, turn.rng)
        if self.charge is not None:
            return self._calibrated(self.charge, turn, mi, entropies)
        by_entropy = ranked(entropies, masked)  # the charging order: highest entropy first
        place = torch.empty_like(by_entropy).scatter(
            1, by_entropy, torch.arange(masked.shape[1], device=masked.device).expand_as(by_entropy)
        )

        def total(members: Tensor, dependence: Tensor) -> Tensor:
            """The sum of all charges; nothing stands before the first member, so that it is free but for its entropy."""
            charge = torch.minimum(entropies, self.penalty * dependence).mul_(members).sum(1)
            if self.entropy_weight:
                own = entropies * members
                charge = charge + self.entropy_weight * (own.sum(1) - own.amax(1))
            return charge

        def admit(candidate: Tensor, relation: Tensor, chosen: Tensor, dependence: Tensor) -> tuple[Tensor, Tensor]:
            at = candidate[:, None]
            dependence = dependence + torch.where(place > place.gather(1, at), relation, 0)
            return total(chosen.scatter(1, at, True), dependence) <= self.budget + TOLERANCE, dependence

        # Every position's dependence on the members before it is carried, chosen or not: O(L) a candidate.
        order = ranked(self._score(mi, entropies), masked)
        chosen, taken, dependence = greedily(order, turn, mi, torch.zeros_like(entropies), admit)
        left = self.budget - total(chosen, dependence)[:, None]
        reason = torch.full_like(order, Reason.BUDGET)
        own = self.entropy_weight * entropies
        charge = torch.minimum(entropies, self.penalty * dependence) + own
        waiting = waiting_for(masked, chosen, mi, reason, own <= left + TOLERANCE, charge)
        return Selection(chosen, taken, waiting)

    def _calibrated(self, charge: Charge, turn: Turn, mi: PairMatrix, entropies: PerPosition) -> Selection:
        """The carry is what has been spent and how many were taken."""
        masked, allowed = turn.prediction.masked, charge.allowed(self.budget)
        unknown = masked.sum(1).double()

        def admit(candidate: Tensor, relation: Tensor, chosen: Tensor, carry: Tensor) -> tuple[Tensor, Tensor]:
            known, size = torch.where(chosen, relation, 0), carry[:, 1]
            own = entropies.gather(1, candidate[:, None])[:, 0]
            features = torch.stack([known.sum(1), known.amax(1), own, size, unknown], dim=1)
            cost = self.penalty * charge(features) + self.entropy_weight * own * (size > 0)
            after = torch.stack([carry[:, 0] + cost, size + 1], dim=1)
            return after[:, 0] <= allowed + TOLERANCE, after

        order = ranked(self._score(mi, entropies), masked)
        chosen, taken, _ = greedily(order, turn, mi, torch.zeros_like(entropies[:, :1]).expand(-1, 2), admit)
        reason = torch.full_like(order, Reason.BUDGET)
        return Selection(chosen, taken, waiting_for(masked, chosen, mi, reason, masked, entropies))

    def _score(self, mi: PairMatrix, entropies: PerPosition) -> PerPosition:
        """Which candidates are tried first."""
        if self.order == "lowest-entropy":
            return -entropies
        if self.order == "highest-entropy":
            return entropies
        information = mi.double().sum(2)
        if self.order == "information":
            return information
        return torch.where(entropies <= TOLERANCE, torch.inf, information)
