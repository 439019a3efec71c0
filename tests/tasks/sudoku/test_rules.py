import pytest
import torch

from pairmi.tasks.sudoku.puzzles import complete_grids, unique_puzzles
from pairmi.tasks.sudoku.rules import cell_name, conflict, peers, units, valid


@pytest.mark.parametrize("order", [2, 3])
def test_units_are_rows_columns_and_boxes(order: int) -> None:
    side = order * order
    plain = [{side * r + c for c in range(side)} for r in range(side)] + [{side * r + c for r in range(side)} for c in range(side)]
    for top in range(0, side, order):
        for left in range(0, side, order):
            plain.append({side * (top + r) + left + c for r in range(order) for c in range(order)})
    assert [set(unit) for unit in units(order).tolist()] == plain


@pytest.mark.parametrize(("order", "seen"), [(2, 7), (3, 20)])
def test_peers_share_a_unit(order: int, seen: int) -> None:
    graph, side = peers(order), order * order
    assert torch.equal(graph, graph.t())
    assert (graph.sum(1) == seen).all()
    for i in range(side * side):
        for j in range(side * side):
            row, column = i // side == j // side, i % side == j % side
            box = i // side // order == j // side // order and i % side // order == j % side // order
            assert bool(graph[i, j]) == (i != j and (row or column or box))


def test_valid_grids_and_every_way_to_break_them() -> None:
    grids = complete_grids(81, 1)
    assert valid(grids).all()
    changed, cells = grids.clone(), torch.arange(81)
    changed[cells, cells] = (changed[cells, cells] + 1) % 9
    assert not valid(changed).any()
    emptied = grids.clone()
    emptied[cells, cells] = 9
    assert not valid(emptied).any()
    swapped = grids.clone()
    swapped[:, [0, 1]] = grids[:, [1, 0]]  # the row and the box still hold each digit once, two columns do not
    assert not valid(swapped).any()
    assert valid(grids[:0]).shape == (0,)


def test_latin_squares_without_boxes_are_not_valid() -> None:
    cyclic = (torch.arange(9)[:, None] + torch.arange(9)) % 9
    assert not valid(cyclic.view(1, 81)).any()


def test_cells_are_named_from_one() -> None:
    assert [cell_name(cell) for cell in (0, 13, 80)] == ["r1c1", "r2c5", "r9c9"]


def test_no_conflict_in_puzzles_and_solutions() -> None:
    puzzles = unique_puzzles(5, 1)
    assert [conflict(canvas) for canvas in (*puzzles.canvases, *puzzles.solutions)] == [None] * 10
    assert conflict(torch.full((81,), 9)) is None


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ((1, 2), (1, 8), "7 stands twice in row 2, at r2c3 and r2c9"),
        ((0, 4), (8, 4), "7 stands twice in column 5, at r1c5 and r9c5"),
        ((3, 6), (5, 8), "7 stands twice in box 6, at r4c7 and r6c9"),
    ],
)
def test_a_conflict_names_the_cells(first: tuple[int, int], second: tuple[int, int], message: str) -> None:
    canvas = torch.full((9, 9), 9)
    canvas[first] = canvas[second] = 6
    assert conflict(canvas.flatten()) == message
