import hashlib

import pytest
import torch

from heads import sudoku
from pairmi.model import Model
from pairmi.tasks.sudoku.rules import peers
from pairmi.training.states import States, SudokuStates, corrupt, grid_name, uniform_masks
from worlds import Linked

MODEL = Model(sudoku().backbone, task=Linked(peers()))
FEW = SudokuStates(each=2, rules=("top-k:k=20", "mi-bound:mi=structural,budget=3"))


def test_states_are_a_function_of_seed_and_shard() -> None:
    first, again, other, later = (FEW.draw(MODEL, seed, shard, 20) for seed, shard in ((0, 0), (0, 0), (1, 0), (0, 1)))
    assert isinstance(FEW, States)
    assert [(s.tokens.tolist(), s.source, s.rule, s.grid) for s in first] == [(s.tokens.tolist(), s.source, s.rule, s.grid) for s in again]
    for different in (other, later):
        assert not {tuple(s.tokens.tolist()) for s in first} & {tuple(s.tokens.tolist()) for s in different}


def test_all_sources_come_and_no_state_twice() -> None:
    states = FEW.draw(MODEL, 0, 0, 20)
    assert len({tuple(state.tokens.tolist()) for state in states}) == len(states) == 20
    counts = {name: [state.source for state in states].count(name) for name in ("uniform", "solving", "generating")}
    assert counts["solving"] == counts["generating"] == 6
    for state in states:
        masked = int((state.tokens == 9).sum())
        assert (state.rule == "") == (state.source == "uniform")
        assert state.source == "uniform" or 2 <= masked < 81
    assert {state.rule for state in states} == {"", *FEW.rules}
    grids = [state.grid for state in states if state.source == "solving"]
    assert len(set(grids)) == 3  # two states of each trajectory


def test_uniform_masks_cover_all_levels() -> None:
    stream = uniform_masks(50, 3, 4)
    states = [next(stream) for _ in range(100)]  # two rounds
    masked = torch.tensor([int((state.tokens == 9).sum()) for state in states]).double() / 81
    assert abs(float(masked.mean()) - 0.5) < 0.05
    assert masked.min() < 0.1
    assert masked.max() > 0.9
    assert len({state.grid for state in states}) == 100


def test_a_grid_is_named_by_its_content() -> None:
    grid = torch.arange(81) % 9
    assert grid_name(grid) == grid_name(grid.clone())
    assert grid_name(grid) != grid_name(grid.roll(1))
    assert len(grid_name(grid)) == 16


def test_names_of_large_alphabets_differ_and_those_of_small_ones_are_as_they_were() -> None:
    grid = torch.arange(81) % 9
    assert grid_name(grid) == hashlib.sha256(bytes(grid.tolist())).hexdigest()[:16]
    assert len({grid_name(grid + shift) for shift in (0, 300, 556, 70_000)}) == 4


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("level", [0.3, 0.5, 0.9])
def test_corruption_masks_at_its_level(level: float) -> None:
    tokens = torch.randint(4, (2000, 50), generator=seeded(0))
    noisy = corrupt(tokens, torch.full((2000,), level), 4, seeded(1))
    hit = noisy == 4
    assert abs(float(hit.double().mean()) - level) < 0.01
    assert (hit.double().mean(0) - level).abs().max() < 0.05  # every position alike
    assert torch.equal(noisy[~hit], tokens[~hit])
    spread = float(hit.sum(1).double().var())
    assert abs(spread / (50 * level * (1 - level)) - 1) < 0.2  # independent: the variance is the binomial one


def test_corruption_masks_at_least_one_and_at_level_one_everything() -> None:
    tokens = torch.randint(4, (500, 6), generator=seeded(0))
    single = corrupt(tokens, torch.zeros(500), 4, seeded(2)) == 4
    assert (single.sum(1) == 1).all()
    assert single.any(0).all()
    assert (corrupt(tokens, torch.ones(500), 4, seeded(3)) == 4).all()
    assert (tokens < 4).all()


def test_each_row_has_its_own_level() -> None:
    levels = torch.tensor([0.0, 1.0]).repeat(50)
    counts = (corrupt(torch.zeros(100, 6, dtype=torch.long), levels, 4, seeded(0)) == 4).sum(1)
    assert counts.tolist() == [1, 6] * 50
