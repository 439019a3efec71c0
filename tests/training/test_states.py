import hashlib

import torch

from heads import sudoku
from pairmi.model import Model
from pairmi.tasks.sudoku.rules import peers
from pairmi.training.states import States, SudokuStates, grid_name, uniform_masks
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
