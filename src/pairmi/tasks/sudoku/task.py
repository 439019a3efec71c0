"""What is known of Sudoku: names of cells, contradictions, a solver, who sees whom."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar

from jaxtyping import Float, Int
from torch import Tensor

from pairmi.model import Task
from pairmi.tasks.sudoku import rules


@dataclass(frozen=True)
class Sudoku(Task):
    """Boards of order^2 x order^2 cells."""

    order: int = 3
    name: str = "sudoku"
    decidable: ClassVar[bool] = True

    def position(self, index: int) -> str:
        """As people say it: r2c5."""
        return rules.cell_name(index, self.order**2)

    def conflict(self, canvas: Int[Tensor, " L"]) -> str | None:
        """Two equal digits that see each other."""
        return rules.conflict(canvas, self.order)

    def search(self, canvas: Int[Tensor, " L"]) -> tuple[bool, str] | None:
        """What a solver, where its extra is installed, says of a puzzle that has not just one solution."""
        if self.order != 3 or find_spec("numba") is None:
            return None
        from pairmi.tasks.sudoku.solver import count_solutions

        if (wrong := self.conflict(canvas)) is not None:
            return False, f"contradiction: {wrong}"
        solutions, empty = count_solutions(canvas.long().numpy()), int((canvas == rules.EMPTY).sum())
        if not solutions:
            return False, "no solution: no two givens contradict each other, but nothing completes them"
        several = f"several solutions: the {81 - empty} givens do not decide all of the {empty} empty cells"
        return None if solutions == 1 else (True, several)

    def judge(self, canvas: Int[Tensor, " L"], filled: Int[Tensor, " L"]) -> str | None:
        """Broken with the reason, else solved (there was one solution) or valid (one of several)."""
        wrong = self.conflict(filled)
        if wrong is not None:
            return f"broken: {wrong}"
        return "valid" if self.order != 3 or find_spec("numba") is None or self.search(canvas) is not None else "solved"

    def graph(self, length: int) -> Float[Tensor, "L L"] | None:
        """Cells that share a row, a column or a box."""
        return rules.peers(self.order)
