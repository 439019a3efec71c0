import numpy as np
import pytest
import torch

from pairmi.tasks.sudoku import puzzles as module
from pairmi.tasks.sudoku.puzzles import TEST, TRAINING, VALIDATION, complete_grids, minimal_puzzles, unique_puzzles
from pairmi.tasks.sudoku.rules import valid
from pairmi.tasks.sudoku.solver import EMPTY, count_solutions
from pairmi.tasks.sudoku.techniques import Technique
from pairmi.types import PairmiError


def test_grids_are_complete_and_a_function_of_the_seed() -> None:
    grids = complete_grids(300, 1)
    assert grids.shape == (300, 81)
    assert grids.dtype == torch.long
    assert valid(grids).all()
    assert torch.equal(grids, complete_grids(300, 1))
    assert torch.equal(grids[:100], complete_grids(100, 1))
    assert not torch.equal(grids, complete_grids(300, 2))


def test_puzzles_have_one_solution_that_agrees_with_the_givens() -> None:
    puzzles = unique_puzzles(60, 1)
    given = puzzles.canvases != EMPTY
    assert valid(puzzles.solutions).all()
    assert torch.equal(puzzles.canvases[given], puzzles.solutions[given])
    assert all(count_solutions(canvas) == 1 for canvas in puzzles.canvases.numpy())
    assert len(puzzles.canvases.unique(dim=0)) == len(puzzles.solutions.unique(dim=0)) == 60


@pytest.mark.parametrize("givens", [(25, 29), (24, 24), (30, 33), (79, 81)])
def test_the_range_of_givens_is_respected_and_used(givens: tuple[int, int]) -> None:
    counted = unique_puzzles(60, 2, givens).givens
    assert set(counted.tolist()) == set(range(givens[0], givens[1] + 1))


def test_the_default_is_25_to_29_evenly() -> None:
    counted = unique_puzzles(200, 3).givens
    assert (int(counted.min()), int(counted.max())) == (25, 29)
    assert torch.bincount(counted)[25:].min() > 200 / 5 / 2  # drawn evenly


def test_the_same_seed_gives_the_same_puzzles() -> None:
    first, again, other = unique_puzzles(10, 4), unique_puzzles(10, 4), unique_puzzles(10, 5)
    assert torch.equal(first.canvases, again.canvases)
    assert torch.equal(first.solutions, again.solutions)
    assert not (first.canvases[:, None] == other.canvases[None]).all(2).any()
    assert torch.equal(unique_puzzles(4, 4).canvases, first.canvases[:4])


def test_splits_never_meet() -> None:
    grids = [complete_grids(500, start) for start in (TRAINING, VALIDATION, TEST)]
    assert len(torch.cat(grids).unique(dim=0)) == 1500


def test_no_puzzles_are_an_empty_set() -> None:
    none = unique_puzzles(0, 0)
    assert none.canvases.shape == none.solutions.shape == (0, 81)
    assert none.canvases.dtype == torch.long
    assert none.givens.tolist() == []


@pytest.mark.parametrize("givens", [(16, 30), (30, 25), (80, 82)])
def test_impossible_ranges_are_refused(givens: tuple[int, int]) -> None:
    with pytest.raises(PairmiError, match=rf"givens must be between 17 .* and 81, got {givens[0]}-{givens[1]}"):
        unique_puzzles(1, 0, givens)


def test_a_target_that_digging_does_not_reach_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "dig", lambda solution, givens, seed: solution)  # as if no cell could be emptied
    with pytest.raises(PairmiError, match=r"no puzzle with 17 givens in 2000 grids; .* ask for more givens"):
        unique_puzzles(1, 0, (17, 17))


def test_minimal_puzzles_need_every_given() -> None:
    """By brute force: one solution, and several without any one of the givens."""
    puzzles = minimal_puzzles(12, 1)
    given = puzzles.canvases != EMPTY
    assert valid(puzzles.solutions).all()
    assert torch.equal(puzzles.canvases[given], puzzles.solutions[given])
    for canvas in puzzles.canvases.numpy():
        assert count_solutions(canvas) == 1
        for cell in np.flatnonzero(canvas != EMPTY):
            fewer = canvas.copy()
            fewer[cell] = EMPTY
            assert count_solutions(fewer) > 1
    assert (puzzles.givens >= 22).all()
    assert (puzzles.givens <= 28).all()


def test_minimal_puzzles_have_each_grade_in_turn() -> None:
    assert minimal_puzzles(10, 2).grades.tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    hard = minimal_puzzles(6, 2, (Technique.BEYOND,))
    assert (hard.grades == Technique.BEYOND).all()
    assert torch.equal(hard.canvases[:2], minimal_puzzles(8, 2).canvases[3::4])  # the first of a grade are the first of it
    with pytest.raises(PairmiError, match=r"minimal_puzzles: expected one grade or more, got none; leave out `grades` for all"):
        minimal_puzzles(1, 0, ())


def test_minimal_puzzles_are_a_function_of_the_seed() -> None:
    first, again, other = minimal_puzzles(12, 3), minimal_puzzles(12, 3), minimal_puzzles(12, 4)
    assert torch.equal(first.canvases, again.canvases)
    assert torch.equal(minimal_puzzles(5, 3).canvases, first.canvases[:5])
    assert not torch.equal(first.canvases, other.canvases)
    assert minimal_puzzles(0, 3).canvases.shape == (0, 81)


def test_minimal_puzzles_of_the_splits_never_meet() -> None:
    sets = [minimal_puzzles(12, seed).solutions for seed in (VALIDATION, TEST)]
    sets += [unique_puzzles(12, seed).solutions for seed in (VALIDATION, TEST)] + [complete_grids(2000, TRAINING)]
    names = [row.numpy().tobytes() for rows in sets for row in rows]
    assert len(set(names)) == len(names)
