import itertools
import math
from collections.abc import Callable

import pytest
import torch

from pairmi.tasks.tables import LETTERS, WORLDS, World, independent, markov_chain, parity, permutations, potts_grid, random_table, sudoku4
from pairmi.types import PairmiError
from worlds import generator, tabular, total_correlation, unknown


def test_there_are_288_different_valid_4x4_grids() -> None:
    grids = sudoku4().support.view(-1, 4, 4)
    assert len(grids) == len(torch.unique(grids, dim=0)) == 288
    for grid in grids.tolist():
        columns = [list(column) for column in zip(*grid, strict=True)]
        boxes = [[grid[r + dr][c + dc] for dr in (0, 1) for dc in (0, 1)] for r in (0, 2) for c in (0, 2)]
        assert all(sorted(house) == [0, 1, 2, 3] for house in (*grid, *columns, *boxes))
    assert len(sudoku4().weights.unique()) == 1


@pytest.mark.parametrize("name", WORLDS)
def test_every_named_world_is_a_distribution_and_always_the_same(name: str) -> None:
    world, again = WORLDS[name](), WORLDS[name]()
    assert torch.equal(world.support, again.support)
    assert torch.equal(world.weights, again.weights)
    assert world.weights.dtype == torch.float64
    assert len(torch.unique(world.support, dim=0)) == len(world.support)
    mass = tabular(world)(unknown(tabular(world))).log_probs.exp().sum(-1)
    torch.testing.assert_close(mass, torch.ones_like(mass))


def test_random_table_is_as_sparse_and_as_sharp_as_asked() -> None:
    full = random_table(5, 3, generator(0))
    assert len(full.support) == 3**5
    assert full.weights.log().std().item() == pytest.approx(1, abs=0.15)
    assert random_table(5, 3, generator(0), sharpness=4.0).weights.log().std().item() == pytest.approx(4, abs=0.6)
    assert len(random_table(5, 3, generator(0), sparsity=0.7).support) == pytest.approx(0.3 * 3**5, abs=25)
    assert len(random_table(5, 3, generator(0), sparsity=1.0).support) == 1
    assert torch.equal(random_table(5, 3, generator(0)).weights, full.weights)


def test_random_table_at_sharpness_zero_is_flat() -> None:
    assert (random_table(3, 2, generator(0), sharpness=0.0).weights == 1).all()


def test_markov_chain_forgets_what_is_behind_a_known_position() -> None:
    world = markov_chain(5, 3, generator(0))
    assert world.weights.sum().item() == pytest.approx(3)  # a flat start, and transitions that sum to 1
    table = tabular(world)
    canvas = unknown(table)
    free = table.mutual_information(canvas)[0]
    assert (free[0, 1:].diff() < 0).all()  # the farther, the less
    canvas[0, 2] = 1
    assert table.mutual_information(canvas)[0, :2, 3:].max() < 1e-12
    assert free[:2, 3:].min() > 1e-6


def test_potts_grid_weighs_by_equal_neighbours() -> None:
    world = potts_grid(2, 3, 2, coupling=0.7)
    bonds = [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]
    for sequence, weight in zip(world.support.tolist(), world.weights.tolist(), strict=True):
        assert weight == pytest.approx(math.exp(0.7 * sum(sequence[i] == sequence[j] for i, j in bonds)))
    assert len(world.support) == 2**6


def test_parity_has_the_sequences_of_even_sum() -> None:
    assert sorted(map(tuple, parity(4).support.tolist())) == [bits for bits in itertools.product((0, 1), repeat=4) if sum(bits) % 2 == 0]
    assert (parity(4).weights == 1).all()


def test_parity_is_independent_until_the_last_position() -> None:
    table = tabular(parity(4))
    every = torch.ones(1, 4, dtype=torch.bool)
    without_last = every.clone()
    without_last[0, 3] = False
    assert total_correlation(table, unknown(table), without_last).item() == pytest.approx(0)
    assert total_correlation(table, unknown(table), every).item() == pytest.approx(math.log(2))


def test_permutations_are_all_orders() -> None:
    assert sorted(map(tuple, permutations(4).support.tolist())) == list(itertools.permutations(range(4)))


def test_independent_has_every_sequence_once() -> None:
    assert sorted(map(tuple, independent(3, 2).support.tolist())) == list(itertools.product((0, 1), repeat=3))
    assert independent(1, 5).support.shape == (5, 1)


def test_symbols_are_the_first_letters() -> None:
    assert independent(1, 35).symbols == tuple(LETTERS)
    assert sudoku4().symbols == ("1", "2", "3", "4")


@pytest.mark.parametrize("size", [0, 36])
def test_refuses_alphabets_that_cannot_be_written(size: int) -> None:
    with pytest.raises(PairmiError, match=f"world: expected 1 to 35 symbols, got {size}"):
        independent(1, size)


@pytest.mark.parametrize(
    ("build", "count"),
    [
        (lambda: independent(20, 2), "2.20"),
        (lambda: random_table(7, 9, generator(0)), "9.7"),
        (lambda: markov_chain(13, 3, generator(0)), "3.13"),
        (lambda: potts_grid(5, 5, 2, 1.0), "2.25"),
        (lambda: parity(30), "2.30"),
    ],
)
def test_refuses_worlds_that_are_too_large(build: Callable[[], World], count: str) -> None:
    with pytest.raises(PairmiError, match=f"world: {count} sequences are too many to write down; at most a million"):
        build()
