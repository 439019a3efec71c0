"""Positions that are pairwise all but independent."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from pairmi.info import confidence
from pairmi.selectors.ranking import TOLERANCE, Nats, Rule, greedily, ranked, waiting_for
from pairmi.types import PairwiseMI, Reason, Selection, Turn

First = Literal["confidence", "information"]


@dataclass(frozen=True)
class IndependentSet(Rule):
    """Fill a maximal set in which no pair shares more than `threshold` nats, the most confident or the most informative first."""

    mi: PairwiseMI
    threshold: Nats = 0.01
    by: First = "confidence"
    reference: ClassVar[str] = "greedy maximal independent set of the graph I_ij > threshold"

    def __call__(self, turn: Turn) -> Selection:
        """Nothing to carry."""
        masked = turn.prediction.masked
        mi = self.mi(turn.prediction, turn.backbone, turn.rng)

        def admit(candidate: Tensor, relation: Tensor, chosen: Tensor, carry: Tensor) -> tuple[Tensor, Tensor]:
            return torch.where(chosen, relation, 0).amax(1) <= self.threshold + TOLERANCE, carry

        first = confidence(turn.prediction.log_probs) if self.by == "confidence" else mi.double().sum(2)
        chosen, order, _ = greedily(ranked(first, masked), turn, mi, torch.zeros_like(first[:, :1]), admit)
        reason = torch.full_like(order, Reason.OUTRANKED)
        return Selection(chosen, order, waiting_for(masked, chosen, mi, reason, masked, torch.zeros_like(first)))
