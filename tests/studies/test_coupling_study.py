import pytest
import torch

from pairmi.commit import Sampling
from pairmi.loading import load
from pairmi.tasks.tables import markov_chain, permutations
from pairmi.types import PairmiError
from studies.coupling import Schedule, best_passes, cost_of_coupling, rule_passes, schedules
from worlds import decode, generator, tabular, unknown


def test_schedules_are_all_there_once() -> None:
    assert len({one.sets for one in schedules(4, 2, True)}) == 24 * 3
    assert len({one.sets for one in schedules(4, 2, False)}) == 2**4 - 2  # which positions come first: neither none nor all


def test_a_schedule_fills_its_sets_in_turn() -> None:
    world = tabular(markov_chain(4, 2, generator(0)))
    assert decode(world, unknown(world, 2), Schedule(((2, 0), (1,), (3,))), Sampling()).passes.tolist() == [3, 3]


def test_tables_save_passes_at_no_price() -> None:
    world = tabular(permutations(4))
    assert best_passes(world, coupled=False)["1e-09"] == 4
    assert best_passes(world, coupled=True)["1e-09"] == rule_passes(world, coupled=True)["1e-09"] == 1


def test_a_cost_needs_tables() -> None:
    with pytest.raises(PairmiError, match="cost: model 'sudoku4' has no tables"):
        cost_of_coupling(load("sudoku4"), "top-k", torch.full((1, 16), 4))
    with pytest.raises(PairmiError, match="cost: model 'sudoku' has no tables, or top-k draws by none"):
        cost_of_coupling(load("sudoku"), "top-k", torch.full((1, 81), 9))
    for spec in ("top-k:k=9,draw=coupled", "top-k:k=9,draw=coupled,defer=0.01"):
        found = cost_of_coupling(load("sudoku"), spec, torch.full((1, 81), 9))
        assert found["coupling"] > 0
        assert found["members"] <= 9
