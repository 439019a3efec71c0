"""Boards to decode: puzzles with one solution, empty boards, boards with many completions."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from pairmi.tasks.sudoku.puzzles import TEST, VALIDATION, complete_grids, minimal_puzzles, paper_puzzles
from pairmi.tasks.sudoku.rules import valid
from pairmi.tasks.sudoku.solver import EMPTY
from pairmi.types import PairmiError

Split = Literal["validation", "test"]
SEEDS = {"validation": VALIDATION + 500_000, "test": TEST}  # validation here is apart from what training looks at
KINDS = ("puzzles", "minimal", "empty", "open")


@dataclass(frozen=True)
class Boards:
    """Canvases of one kind; good = filled as the only solution says, or, where many are right, obeying the rules."""

    kind: str
    split: str
    canvases: Int[Tensor, "N 81"]
    solutions: Int[Tensor, "N 81"] | None = None

    def good(self, filled: Int[Tensor, "N 81"]) -> Bool[Tensor, " N"]:
        """Which boards came out right."""
        return valid(filled) if self.solutions is None else (filled == self.solutions).all(1)


def make_boards(kind: str, count: int, split: Split = "test", givens: int = 12) -> Boards:
    """The first `count` boards of a kind.

    puzzles: 25-29 givens, 27.1 on the average, one solution each. minimal: 22-28 givens of which none can be left out, one solution
    each, as many of one difficulty as of another. empty: nothing given; the splits differ in name only, their
    draws differ by seed. open: `givens` random cells of random grids, which leave very many completions.
    """
    if kind not in KINDS or split not in SEEDS or count < 1:
        raise PairmiError(f"boards: expected one of {', '.join(KINDS)}, of {' or '.join(SEEDS)}, at least 1; got {kind}, {split}, {count}")
    if kind in ("puzzles", "minimal"):
        made = (paper_puzzles if kind == "puzzles" else minimal_puzzles)(count, SEEDS[split])
        return Boards(kind, split, made.canvases, made.solutions)
    if kind == "empty":
        return Boards(kind, split, torch.full((count, 81), EMPTY))
    grids = complete_grids(count, SEEDS[split] + 1)
    chance = torch.rand(grids.shape, generator=torch.Generator().manual_seed(SEEDS[split]))
    return Boards(kind, split, torch.where(chance.argsort(1).argsort(1) < givens, grids, EMPTY))
