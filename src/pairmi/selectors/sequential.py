"""One position at a time."""

from dataclasses import dataclass
from typing import ClassVar

from pairmi.selectors.ranking import By, one_of
from pairmi.selectors.top_k import TopK
from pairmi.types import Selection, Turn


@dataclass(frozen=True)
class Sequential:
    """Fill the most confident position only: as many passes as there are unknowns, and nothing lost."""

    by: By = "confidence"
    reference: ClassVar[str] = "the baseline of the paper"

    def __post_init__(self) -> None:
        one_of(self, "by", self.by, By)

    def __call__(self, turn: Turn) -> Selection:
        """Top-k with k = 1."""
        return TopK(1, self.by)(turn)
