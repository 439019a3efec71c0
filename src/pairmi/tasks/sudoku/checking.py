"""Whether a Sudoku canvas can be completed, and in how many ways."""

from dataclasses import dataclass
from enum import StrEnum

import torch
from jaxtyping import Int
from torch import Tensor

from pairmi.tasks.sudoku.rules import conflict
from pairmi.tasks.sudoku.solver import EMPTY, count_solutions, solve


class Verdict(StrEnum):
    """What can be said of a canvas."""

    CONTRADICTION = "contradiction"  # two givens break a rule
    NO_SOLUTION = "no solution"  # no two givens do, and still nothing completes it
    SEVERAL = "several solutions"
    UNIQUE = "one solution"


@dataclass(frozen=True)
class Status:
    """A verdict, the sentence for the user, and a solution: the only one, one of several, or None."""

    verdict: Verdict
    message: str
    solution: Int[Tensor, " 81"] | None

    @property
    def unique(self) -> bool:
        """Whether it is a proper puzzle."""
        return self.verdict is Verdict.UNIQUE


def status(canvas: Int[Tensor, " 81"]) -> Status:
    """Look for two givens that contradict each other, then search: milliseconds, for a few unsolvable canvases seconds."""
    contradiction = conflict(canvas)
    if contradiction is not None:
        return Status(Verdict.CONTRADICTION, f"contradiction: {contradiction}", None)
    grid = canvas.long().numpy()
    found, _ = solve(grid)
    if found is None:
        return Status(Verdict.NO_SOLUTION, "no solution: no two givens contradict each other, but nothing completes them", None)
    solution, empty = torch.from_numpy(found), int((canvas == EMPTY).sum())
    if count_solutions(grid) > 1:
        return Status(Verdict.SEVERAL, f"several solutions: the {81 - empty} givens do not decide all of the {empty} empty cells", solution)
    return Status(Verdict.UNIQUE, "one solution", solution)
