"""Numbers for pairs of positions, with the labels that a reader needs."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

ROBUST = 0.995  # the quantile at which colours end: a few very strong pairs do not leave all others dark


@dataclass(frozen=True)
class Scores:
    """A matrix over all positions, of which some are shown."""

    matrix: Float[np.ndarray, "L L"]
    symbols: tuple[str, ...]  # what stands at each position; empty where that is unknown
    names: tuple[str, ...]  # what people call the positions
    shown: tuple[int, ...]  # the positions that pairs are made of
    title: str
    unit: str
    directed: bool = False  # [i, j] and [j, i] are two numbers; else one

    @property
    def labels(self) -> list[str]:
        """Symbol and name of each position that is shown, such as G52."""
        return [
            f"{self.symbols[i]}{self.names[i]}" if len(self.symbols[i]) <= 1 else f"{self.symbols[i]} {self.names[i]}" for i in self.shown
        ]

    @property
    def square(self) -> Float[np.ndarray, "N N"]:
        """The scores among the positions that are shown; not a number on the diagonal."""
        inside = self.matrix[np.ix_(self.shown, self.shown)].astype(float)
        np.fill_diagonal(inside, np.nan)
        return inside

    @property
    def ceiling(self) -> float:
        """Where colours end."""
        values = self.square[~np.eye(len(self.shown), dtype=bool)]
        return max(float(np.quantile(values, ROBUST)), 1e-12) if len(values) else 1.0

    def listed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All pairs that are shown: i, j, score."""
        places, kept = np.array(self.shown, dtype=int), self._kept()
        i, j = (places[axis] for axis in np.nonzero(kept))
        return i, j, self.matrix[i, j]

    def strongest(self, count: int) -> list[tuple[int, int, float]]:
        """The pairs with the highest scores above 0; of equals the first."""
        i, j, score = self.listed()
        best = [n for n in np.argsort(-score, kind="stable")[:count] if score[n] > 0]
        return [(int(i[n]), int(j[n]), float(score[n])) for n in best]

    def _kept(self) -> Bool[np.ndarray, "N N"]:
        everything = ~np.eye(len(self.shown), dtype=bool)
        return everything if self.directed else np.triu(everything)
