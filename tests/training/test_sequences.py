import pytest
import torch

from heads import tiny
from pairmi.training.sequences import SequenceStates
from pairmi.types import PairmiError

MODEL = tiny()
COMPLETE = [torch.randint(4, (8,), generator=torch.Generator().manual_seed(n)) for n in range(20)]


def test_states_are_a_function_of_seed_and_shard() -> None:
    states = SequenceStates(COMPLETE)
    one, again, other = (states.draw(MODEL, 0, shard, 16) for shard in (0, 0, 1))
    assert all(torch.equal(a.tokens, b.tokens) and a.grid == b.grid for a, b in zip(one, again, strict=True))
    assert not all(torch.equal(a.tokens, b.tokens) for a, b in zip(one, other, strict=True))
    assert {state.source for state in one} == {"uniform", "generating"}
    for state in one:
        unknown = state.tokens == MODEL.vocab.size
        assert int(unknown.sum()) >= 2
        if state.source == "uniform":
            assert any(bool((unknown | (state.tokens == whole)).all()) for whole in COMPLETE)


def test_trajectories_begin_with_the_canvases() -> None:
    canvas = torch.tensor([0, 1, 4, 4, 4, 4, 4, 4])
    states = SequenceStates((), [canvas]).draw(MODEL, 0, 0, 12)
    assert all(state.source == "generating" and state.tokens[:2].tolist() == [0, 1] for state in states)
    assert SequenceStates((), [canvas]).about() != SequenceStates([canvas]).about()


def test_too_few_different_states_are_named() -> None:
    almost = torch.tensor([0, 1, 2, 3, 0, 1, 4, 4])
    with pytest.raises(PairmiError, match="sequences of 8 positions give 1 different states, 12 are wanted; give more or longer ones"):
        SequenceStates((), [almost]).draw(MODEL, 0, 0, 12)


def test_a_rule_that_fills_everything_in_one_pass_leaves_its_turn_to_the_next() -> None:
    rules = ("top-k:k=8", "sequential")
    states = SequenceStates(COMPLETE, rules=rules).draw(MODEL, 0, 0, 4)  # one trajectory a round, and shard 0 begins with top-k
    assert {state.rule for state in states if state.source == "generating"} == {"sequential"}
    with pytest.raises(PairmiError, match="give 0 different states"):
        SequenceStates((), [torch.full((8,), 4)], rules=rules[:1]).draw(MODEL, 0, 0, 4)
