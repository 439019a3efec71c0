import pytest
import torch

from pairmi.tasks.sudoku.puzzles import VALIDATION, Puzzles, unique_puzzles
from pairmi.tasks.sudoku.solver import count_solutions
from pairmi.tasks.sudoku.techniques import Technique
from pairmi.types import PairmiError
from studies.boards import make_boards


def names(grids: torch.Tensor) -> set[bytes]:
    return {row.numpy().tobytes() for row in grids}


def test_the_splits_do_not_meet() -> None:
    validation, test = make_boards("puzzles", 50, "validation"), make_boards("puzzles", 50, "test")
    assert not names(validation.solutions) & names(test.solutions)
    assert not names(validation.solutions) & names(unique_puzzles(50, VALIDATION).solutions)  # nor what training looks at
    assert torch.equal(make_boards("puzzles", 20).canvases, test.canvases[:20])


def test_puzzles_have_one_good_filling_and_open_boards_many() -> None:
    puzzles, boards = make_boards("puzzles", 10), make_boards("open", 10)
    assert puzzles.good(puzzles.solutions).all()
    assert not puzzles.good(puzzles.solutions.roll(1, 0)).any()
    assert ((boards.canvases != 9).sum(1) == 12).all()
    assert all(count_solutions(canvas, 50) == 50 for canvas in boards.canvases.numpy())
    assert boards.good(puzzles.solutions).all()
    assert (make_boards("empty", 3).canvases == 9).all()


def test_minimal_puzzles_are_of_every_difficulty_and_each_split_has_its_own() -> None:
    validation, test = make_boards("minimal", 4, "validation"), make_boards("minimal", 4)
    assert Puzzles(test.canvases, test.solutions).grades.tolist() == [int(grade) for grade in Technique]
    assert not (test.solutions[:, None] == validation.solutions).all(2).any()
    assert test.good(test.solutions).all()


@pytest.mark.parametrize(("kind", "split", "count"), [("mars", "test", 1), ("puzzles", "train", 1), ("puzzles", "test", 0)])
def test_others_are_refused(kind: str, split: str, count: int, unchecked: None) -> None:
    with pytest.raises(PairmiError, match="boards: expected one of puzzles, minimal, empty, open, of validation or test, at least 1; got"):
        make_boards(kind, count, split)
