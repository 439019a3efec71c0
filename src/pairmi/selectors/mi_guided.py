"""The paper's rule: a budget of entropy plus mutual information."""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from pairmi.info import entropy_of
from pairmi.selectors.ranking import TOLERANCE, Nats, Rule, Weight, greedily, ranked, waiting_for
from pairmi.types import PairwiseMI, Reason, Selection, Turn


@dataclass(frozen=True)
class MIGuided(Rule):
    """By rising entropy, fill what fits the budget at H_i + penalty * (sum of MI with what is already chosen); skip what does not."""

    mi: PairwiseMI
    budget: Nats = 0.1  # loses little with a trained model; the paper takes 0.3
    penalty: Weight = 1.0
    reference: ClassVar[str] = "the paper, Algorithm 1"

    def __call__(self, turn: Turn) -> Selection:
        """The carry is what has been spent."""
        masked, entropies = turn.prediction.masked, entropy_of(turn.prediction)
        affordable = entropies <= self.budget + TOLERANCE  # nothing else can be chosen, so that nobody need know its pairs
        mi = self.mi(replace(turn.prediction, query=affordable), turn.backbone, turn.rng)

        def admit(candidate: Tensor, relation: Tensor, chosen: Tensor, spent: Tensor) -> tuple[Tensor, Tensor]:
            cost = entropies.gather(1, candidate[:, None]) + self.penalty * torch.where(chosen, relation, 0).sum(1, keepdim=True)
            return (spent + cost <= self.budget + TOLERANCE)[:, 0], spent + cost

        spent = torch.zeros_like(entropies[:, :1])
        chosen, order, spent = greedily(ranked(-entropies, masked), turn, mi, spent, admit)
        alone = entropies > self.budget
        reason = torch.where(alone, int(Reason.UNCERTAIN), int(Reason.BUDGET))
        fits_alone = entropies <= self.budget - spent
        cost = torch.where(alone, entropies, entropies + self.penalty * torch.where(chosen[:, None, :], mi, 0).sum(2))
        return Selection(chosen, order, waiting_for(masked, chosen, mi, reason, fits_alone, cost))
