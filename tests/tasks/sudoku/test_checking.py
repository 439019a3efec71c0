import torch

from pairmi.tasks.sudoku.checking import Verdict, status
from pairmi.tasks.sudoku.puzzles import complete_grids, unique_puzzles
from pairmi.tasks.sudoku.rules import valid


def test_puzzles_are_unique_and_solved() -> None:
    puzzles = unique_puzzles(10, 1)
    for canvas, solution in zip(puzzles.canvases, puzzles.solutions, strict=True):
        found = status(canvas)
        assert found.unique
        assert found.verdict is Verdict.UNIQUE
        assert found.message == "one solution"
        assert torch.equal(found.solution, solution)


def test_a_complete_grid_is_its_own_solution() -> None:
    grid = complete_grids(1, 2)[0]
    assert torch.equal(status(grid).solution, grid)
    assert status(grid).unique


def test_a_contradiction_names_its_cells() -> None:
    canvas = torch.full((81,), 9)
    canvas[[10, 16]] = 3
    found = status(canvas)
    assert found.verdict is Verdict.CONTRADICTION
    assert found.message == "contradiction: 4 stands twice in row 2, at r2c2 and r2c8"
    assert found.solution is None
    assert not found.unique


def test_no_solution_without_a_contradiction() -> None:
    canvas = torch.full((81,), 9)
    canvas[:8] = torch.arange(8)
    canvas[26] = 8  # the 9 that r1c9 needs already stands in its column
    found = status(canvas)
    assert found.verdict is Verdict.NO_SOLUTION
    assert found.message.startswith("no solution: ")
    assert found.solution is None


def test_several_solutions_are_said_and_one_is_shown() -> None:
    empty = status(torch.full((81,), 9))
    assert empty.verdict is Verdict.SEVERAL
    assert empty.message == "several solutions: the 0 givens do not decide all of the 81 empty cells"
    assert valid(empty.solution[None]).all()
    puzzle = unique_puzzles(1, 3, (25, 25)).canvases[0]
    puzzle[torch.nonzero(puzzle != 9)[:9, 0]] = 9  # 16 givens never have one solution
    found = status(puzzle)
    assert found.verdict is Verdict.SEVERAL
    assert found.message.startswith("several solutions: the 16 givens")
    given = puzzle != 9
    assert torch.equal(found.solution[given], puzzle[given])


def test_the_canvas_is_left_alone_and_may_be_of_any_integer_type() -> None:
    canvas = unique_puzzles(1, 4).canvases[0]
    before = canvas.clone()
    assert torch.equal(status(canvas).solution, status(canvas.int()).solution)
    assert torch.equal(canvas, before)
