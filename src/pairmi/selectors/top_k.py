"""The k most confident positions, or one."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from pairmi.selectors.ranking import By, Count, Rule, ranked, score, take
from pairmi.types import Reason, Selection, Turn


@dataclass(frozen=True)
class TopK(Rule):
    """Fill the k most confident positions, by confidence, margin, entropy, or in random order."""

    k: Count = 2
    by: By = "confidence"
    reference: ClassVar[str] = "Ghazvininejad et al. 2019; margin: Kim et al. 2025"

    def __call__(self, turn: Turn) -> Selection:
        """The first k of the ranking."""
        masked, scores = turn.prediction.masked, score(self.by, turn)
        count = torch.full_like(masked[:, 0], self.k, dtype=torch.long)
        return take(ranked(scores, masked), count, masked, Reason.OUTRANKED, scores)


@dataclass(frozen=True)
class Sequential(Rule):
    """Fill the most confident position only: as many passes as there are unknowns, and nothing lost."""

    by: By = "confidence"
    reference: ClassVar[str] = "the baseline of the paper"

    def __call__(self, turn: Turn) -> Selection:
        """Top-k with k = 1."""
        return TopK(1, self.by)(turn)
