"""Symmetries turn puzzles into other puzzles of the same kind, and every part of the group occurs."""

import math

import numpy as np
import torch
from torch import Tensor

from pairmi.tasks.sudoku.puzzles import complete_grids, unique_puzzles
from pairmi.tasks.sudoku.rules import peers, valid
from pairmi.tasks.sudoku.solver import EMPTY, count_solutions, difficulty
from pairmi.tasks.sudoku.symmetry import random_symmetries, transform


def draw(count: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    return random_symmetries(count, torch.Generator().manual_seed(seed))


def test_valid_grids_stay_valid_and_become_different_ones() -> None:
    grids = complete_grids(500, 1)
    moved = transform(grids, *draw(500))
    assert valid(moved).all()
    assert (moved != grids).any(1).all()
    one = transform(grids[:1].expand(500, 81), *draw(500))
    assert valid(one).all()
    assert len(one.unique(dim=0)) == 500


def test_broken_grids_stay_broken() -> None:
    grids = complete_grids(200, 2)
    grids[:, 40] = (grids[:, 40] + 1) % 9
    assert not valid(grids).any()
    assert not valid(transform(grids, *draw(200))).any()


def test_puzzles_keep_their_one_solution_and_their_givens() -> None:
    puzzles, symmetry = unique_puzzles(40, 3), draw(40)
    canvases, solutions = transform(puzzles.canvases, *symmetry), transform(puzzles.solutions, *symmetry)
    given = canvases != EMPTY
    assert torch.equal(given.sum(1), puzzles.givens)
    assert torch.equal(canvases[given], solutions[given])
    assert all(count_solutions(canvas) == 1 for canvas in canvases.numpy())
    assert valid(solutions).all()


def test_an_unsolvable_canvas_stays_unsolvable() -> None:
    canvas = torch.full((1, 81), EMPTY)
    canvas[0, :8] = torch.arange(8)
    canvas[0, 26] = 8  # the only digit left for r1c9 stands in its column
    moved = transform(canvas.expand(50, 81), *draw(50))
    assert [count_solutions(one) for one in moved.numpy()] == [0] * 50
    assert [difficulty(one) < 0 for one in moved.numpy()] == [True] * 50  # the search does not get to fill the board


def test_empty_cells_move_and_stay_empty() -> None:
    empty = torch.full((30, 81), EMPTY)
    assert torch.equal(transform(empty, *draw(30)), empty)
    source, digits = draw(30)
    canvases = unique_puzzles(30, 4).canvases
    assert torch.equal(transform(canvases, source, digits) == EMPTY, (canvases == EMPTY).gather(1, source))


def test_transform_against_its_definition() -> None:
    canvases, (source, digits) = unique_puzzles(5, 6).canvases, draw(5)
    plain = canvases.clone()
    for n in range(5):
        for cell in range(81):
            symbol = int(canvases[n, source[n, cell]])
            plain[n, cell] = symbol if symbol == EMPTY else digits[n, symbol]
    assert torch.equal(transform(canvases, source, digits), plain)


def test_cells_are_permuted_so_that_peers_stay_peers() -> None:
    graph = peers()
    source, digits = draw(100)
    assert torch.equal(source.sort(1).values, torch.arange(81).expand(100, 81))
    assert torch.equal(digits.sort(1).values, torch.arange(9).expand(100, 9))
    assert all(torch.equal(graph[one][:, one], graph) for one in source)


def test_every_part_of_the_group_occurs_evenly() -> None:
    count = 6000
    source, digits = draw(count, 5)
    board = source.view(count, 9, 9)
    flipped = (board[:, 0, 0] // 9) != (board[:, 0, 1] // 9)  # neighbours in a row come from one column
    assert abs(flipped.double().mean() - 0.5) < 0.03
    board = torch.where(flipped[:, None, None], board.transpose(1, 2), board)
    rows, columns = board[:, :, 0] // 9, board[:, 0, :] % 9
    for lines in (rows, columns):
        bands = lines[:, ::3] // 3
        assert counts(bands.numpy()) == math.factorial(3)
        for band in range(3):
            assert counts((lines[:, 3 * band : 3 * band + 3] % 3).numpy()) == math.factorial(3)
    assert abs((rows == torch.arange(9)).double().mean() - 1 / 9) < 0.01
    shares = torch.stack([(digits == digit).double().mean(0) for digit in range(9)])
    assert (shares - 1 / 9).abs().max() < 0.03


def counts(permutations: np.ndarray) -> int:
    """How many different permutations there are; none of them may be rare."""
    kinds, times = np.unique(permutations, axis=0, return_counts=True)
    assert times.min() > 0.8 * len(permutations) / len(kinds)
    return len(kinds)


def test_a_seed_says_everything() -> None:
    assert all(torch.equal(a, b) for a, b in zip(draw(10, 3), draw(10, 3), strict=True))
    assert not torch.equal(draw(10, 3)[0], draw(10, 4)[0])
