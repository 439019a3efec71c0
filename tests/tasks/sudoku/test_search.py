import torch

from pairmi.tasks.sudoku.puzzles import complete_grids, unique_puzzles
from pairmi.tasks.sudoku.task import Sudoku

TASK = Sudoku()


def test_of_puzzles_with_one_solution_there_is_nothing_to_say() -> None:
    puzzles = unique_puzzles(10, 1)
    for canvas, solution in zip(puzzles.canvases, puzzles.solutions, strict=True):
        assert TASK.search(canvas) is None
        assert TASK.judge(canvas, solution) == "solved"


def test_a_complete_grid_is_its_own_solution() -> None:
    grid = complete_grids(1, 2)[0]
    assert TASK.search(grid) is None
    assert TASK.judge(grid, grid) == "solved"


def test_a_contradiction_names_its_cells() -> None:
    canvas = torch.full((81,), 9)
    canvas[[10, 16]] = 3
    assert TASK.search(canvas) == (False, "contradiction: 4 stands twice in row 2, at r2c2 and r2c8")


def test_no_solution_without_a_contradiction() -> None:
    canvas = torch.full((81,), 9)
    canvas[:8] = torch.arange(8)
    canvas[26] = 8  # the 9 that r1c9 needs already stands in its column
    assert TASK.search(canvas) == (False, "no solution: no two givens contradict each other, but nothing completes them")


def test_several_solutions_are_said() -> None:
    empty = torch.full((81,), 9)
    assert TASK.search(empty) == (True, "several solutions: the 0 givens do not decide all of the 81 empty cells")
    assert TASK.judge(empty, complete_grids(1, 2)[0]) == "valid"
    puzzle = unique_puzzles(1, 3, (25, 25)).canvases[0]
    puzzle[torch.nonzero(puzzle != 9)[:9, 0]] = 9  # 16 givens never have one solution
    assert TASK.search(puzzle) == (True, "several solutions: the 16 givens do not decide all of the 65 empty cells")


def test_the_canvas_is_left_alone_and_may_be_of_any_integer_type() -> None:
    canvas = unique_puzzles(1, 4).canvases[0]
    before = canvas.clone()
    assert TASK.search(canvas) is TASK.search(canvas.int()) is None
    canvas[torch.nonzero(canvas != 9)[:9, 0]] = 9
    assert TASK.search(canvas) == TASK.search(canvas.int()) != None  # noqa: E711
    canvas[before != 9] = before[before != 9]
    assert torch.equal(canvas, before)
