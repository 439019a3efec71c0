"""Sets of grids and of puzzles with one solution, each a function of its seed; training and test sets never meet."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from pairmi.tasks.sudoku.solver import EMPTY, Grid, dig, random_grids
from pairmi.types import PairmiError

TRAINING, VALIDATION, TEST = 1_000_000, 2_000_000, 3_000_000  # where the seeds of each split begin


@dataclass(frozen=True)
class Puzzles:
    """Puzzles and their only solutions as tokens (9 = empty)."""

    canvases: Int[Tensor, "N 81"]
    solutions: Int[Tensor, "N 81"]

    @property
    def givens(self) -> Int[Tensor, " N"]:
        """The number of given cells of each."""
        return (self.canvases != EMPTY).sum(1)


def complete_grids(count: int, seed: int) -> Int[Tensor, "N 81"]:
    """Random complete grids as tokens 0..8."""
    return torch.from_numpy(random_grids(count, seed))


def unique_puzzles(count: int, seed: int, givens: tuple[int, int] = (25, 29)) -> Puzzles:
    """Puzzles with a proved unique solution and a number of givens drawn evenly from the range, ends included."""
    low, high = givens
    if not 17 <= low <= high <= 81:
        raise PairmiError(f"puzzles: givens must be between 17 (fewer never have one solution) and 81, got {low}-{high}")
    targets = np.random.default_rng((seed, 1)).integers(low, high + 1, count)  # of their own: fewer puzzles are the first of more
    return _dug(targets.tolist(), np.random.default_rng(seed))


def paper_puzzles(count: int, seed: int) -> Puzzles:
    """Puzzles with 25 to 29 givens, 27.1 on the average: the 53.9 empty cells of the paper's test set."""
    pattern = (25, 26, 26, 27, 27, 27, 28, 28, 28, 29)
    return _dug([pattern[n % len(pattern)] for n in range(count)], np.random.default_rng(seed))


def _dug(targets: Sequence[int], rng: np.random.Generator) -> Puzzles:
    """One puzzle for each number of givens; a grid from which so many cells cannot be dug in the drawn order is replaced by another."""
    canvases: list[Grid] = []
    solutions: list[Grid] = []
    for target in targets:
        for _ in range(2000):
            solution = random_grids(1, int(rng.integers(2**31)))[0]
            puzzle = dig(solution, target, int(rng.integers(2**31)))
            if (puzzle != EMPTY).sum() == target:
                break
        else:
            raise PairmiError(
                f"puzzles: no puzzle with {target} givens in 2000 grids; random digging rarely gets below 22, ask for more givens"
            )
        canvases.append(puzzle)
        solutions.append(solution)
    stacked = [torch.from_numpy(np.array(grids, np.int64).reshape(-1, 81)) for grids in (canvases, solutions)]
    return Puzzles(*stacked)
