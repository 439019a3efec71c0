"""Sets of grids and of puzzles with one solution, each a function of its seed; training and test sets never meet."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from pairmi.tasks.sudoku.solver import EMPTY, Grid, dig, random_grids
from pairmi.tasks.sudoku.techniques import Technique, technique
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

    @property
    def grades(self) -> Int[Tensor, " N"]:
        """The hardest technique that each needs, as the number of a `Technique`; 0.1 ms a puzzle."""
        return torch.tensor([int(technique(canvas)) for canvas in self.canvases.numpy()], dtype=torch.long)


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


def minimal_puzzles(count: int, seed: int, grades: Sequence[Technique] = tuple(Technique)) -> Puzzles:
    """Puzzles of 22 to 28 givens of which none can be left out, of each grade in turn: as many of one as of another.

    The k-th puzzle of a grade is the k-th of it in one stream of random puzzles; about 4 ms for each in the stream, in which
    singles are enough for 42 %, locked candidates for 13 %, subsets for 7 %, and 39 % are beyond.
    """
    if not grades:
        raise PairmiError("minimal_puzzles: expected one grade or more, got none; leave out `grades` for all")
    rng = np.random.default_rng((seed, 2))
    waiting: dict[Technique, deque[tuple[Grid, Grid]]] = {grade: deque() for grade in Technique}
    taken: list[tuple[Grid, Grid]] = []
    for number in range(count):
        grade = grades[number % len(grades)]
        while not waiting[grade]:
            puzzle, solution = _random_puzzle(rng, 0)
            if 22 <= (puzzle != EMPTY).sum() <= 28:
                waiting[technique(puzzle)].append((puzzle, solution))
        taken.append(waiting[grade].popleft())
    return _together(taken)


def _random_puzzle(rng: np.random.Generator, givens: int) -> tuple[Grid, Grid]:
    """A puzzle dug from a random grid, and this grid."""
    solution = random_grids(1, int(rng.integers(2**31)))[0]
    return dig(solution, givens, int(rng.integers(2**31))), solution


def _together(pairs: Sequence[tuple[Grid, Grid]]) -> Puzzles:
    both = torch.from_numpy(np.array(pairs, np.int64).reshape(-1, 2, 81))
    return Puzzles(both[:, 0], both[:, 1])


def _dug(targets: Sequence[int], rng: np.random.Generator) -> Puzzles:
    """One puzzle for each number of givens; a grid from which so many cells cannot be dug in the drawn order is replaced by another."""
    taken: list[tuple[Grid, Grid]] = []
    for target in targets:
        tries = (_random_puzzle(rng, target) for _ in range(2000))
        found = next((pair for pair in tries if (pair[0] != EMPTY).sum() == target), None)
        if found is None:
            raise PairmiError(
                f"puzzles: no puzzle with {target} givens in 2000 grids; random digging rarely gets below 22, ask for more givens"
            )
        taken.append(found)
    return _together(taken)
