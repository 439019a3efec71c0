"""The entropy-bounded sampler."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from pairmi.info import entropy_of
from pairmi.selectors.ranking import TOLERANCE, Nats, Rule, ranked, score, take
from pairmi.types import Reason, Selection, Turn

Proxy = Literal["entropy", "confidence", "margin"]


@dataclass(frozen=True)
class EB(Rule):
    """Fill the longest prefix, most confident first, whose entropies without the largest sum to at most the budget."""

    budget: Nats = 0.05
    by: Proxy = "entropy"
    reference: ClassVar[str] = "Ben-Hamu et al. 2025 (EB-Sampler)"

    def __call__(self, turn: Turn) -> Selection:
        """Cumsum(H) - cummax(H) <= budget, which grows along the ranking."""
        masked, entropies = turn.prediction.masked, entropy_of(turn.prediction)
        order = ranked(score(self.by, turn), masked)
        sorted_entropies, open_ = entropies.gather(1, order), masked.gather(1, order)
        error = sorted_entropies.cumsum(1) - sorted_entropies.cummax(1).values
        count = ((error <= self.budget + TOLERANCE) & open_).sum(1)
        needed = torch.zeros_like(error).scatter(1, order, error)  # to fill a position and all before it
        return take(order, count, masked, Reason.BUDGET, needed)
