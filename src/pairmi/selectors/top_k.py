"""The k most confident positions."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from pairmi.selectors.ranking import By, at_least, one_of, ranked, score, take
from pairmi.types import Reason, Selection, Turn


@dataclass(frozen=True)
class TopK:
    """Fill the k most confident positions, by confidence, margin, entropy, or in random order."""

    k: int = 2
    by: By = "confidence"
    reference: ClassVar[str] = "Ghazvininejad et al. 2019; margin: Kim et al. 2025"

    def __post_init__(self) -> None:
        at_least(self, "k", self.k, 1)
        one_of(self, "by", self.by, By)

    def __call__(self, turn: Turn) -> Selection:
        """The first k of the ranking."""
        masked, scores = turn.prediction.masked, score(self.by, turn)
        count = torch.full_like(masked[:, 0], self.k, dtype=torch.long)
        return take(ranked(scores, masked), count, masked, Reason.OUTRANKED, scores)
