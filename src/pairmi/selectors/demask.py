"""A neighbour's rule: most confident first, while what the chosen ones share in all is bounded."""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from pairmi.info import confidence
from pairmi.selectors.ranking import TOLERANCE, NotNegative, Rule, greedily, ranked, waiting_for
from pairmi.types import PairwiseMI, Reason, Selection, Turn


@dataclass(frozen=True)
class Demask(Rule):
    """Fill the most confident while the dependence of all chosen pairs adds up to at most the budget; skip what does not fit.

    With total variations for dependence (mi=probe,form=tv) the budget bounds, by the chain rule and if influences add up, the total
    variation between filling at once and sequentially. Only positions of at least this `confidence` are candidates.
    """

    mi: PairwiseMI
    budget: NotNegative = 0.1
    confidence: NotNegative = 0.0
    reference: ClassVar[str] = "DEMASK (Ringel, Ali, Romano 2026), its selection; the authors train a predictor of total variations"

    def __call__(self, turn: Turn) -> Selection:
        """The carry is what has been spent."""
        sure = confidence(turn.prediction.log_probs)
        masked, able = turn.prediction.masked, sure >= self.confidence
        mi = self.mi(replace(turn.prediction, query=able) if self.confidence else turn.prediction, turn.backbone, turn.rng)

        def admit(candidate: Tensor, relation: Tensor, chosen: Tensor, spent: Tensor) -> tuple[Tensor, Tensor]:
            after = spent + torch.where(chosen, relation, 0).sum(1, keepdim=True)
            return (after <= self.budget + TOLERANCE)[:, 0] & able.gather(1, candidate[:, None])[:, 0], after

        chosen, order, _ = greedily(ranked(sure, masked), turn, mi, torch.zeros_like(sure[:, :1]), admit)
        reason = torch.where(able, int(Reason.BUDGET), int(Reason.UNCERTAIN))
        amount = torch.where(able, torch.where(chosen[:, None, :], mi, 0).sum(2), 1 - sure)
        return Selection(chosen, order, waiting_for(masked, chosen, mi, reason, able, amount))
