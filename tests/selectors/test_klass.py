import pytest
import torch

from pairmi.commit import Sampling
from pairmi.selectors.klass import Klass
from pairmi.tasks.tables import random_table
from pairmi.types import PairmiError, Reason, Selection
from rules import Situation, beliefs
from worlds import decode, generator, tabular


def run(rule: Klass, *passes: torch.Tensor) -> list[Selection]:
    """The same canvas, nothing filled, under beliefs that change from pass to pass."""
    state: dict[str, torch.Tensor] = {}
    out = []
    for log_probs in passes:
        open_ = torch.ones(log_probs.shape[:2], dtype=torch.bool)
        out.append(rule(Situation(log_probs, open_, torch.zeros(1, 1, 1)).turn(state)))
        state = dict(out[-1].state)
    return out


@pytest.mark.parametrize("history", [1, 2, 3])
def test_needs_so_many_calm_passes(history: int) -> None:
    sure = beliefs(0.95, 0.97, 0.5)
    counts = [int(selection.chosen.sum()) for selection in run(Klass(history=history), *[sure] * 5)]
    assert counts == [1] * history + [2] * (5 - history)


def test_a_belief_that_moves_starts_again() -> None:
    calm, moved = beliefs(0.95, 0.97, 0.5), beliefs(0.95, 0.92, 0.5)  # the second position moves by 0.03 nats
    chosen = [selection.chosen[0].tolist() for selection in run(Klass(), calm, calm, moved, moved, moved)]
    assert chosen[1] == [False, True, False]  # not calm for long enough: the most confident
    assert chosen[2] == [True, False, False]  # only the first is stable now
    assert chosen[4] == [True, True, False]


def test_a_calm_but_unsure_belief_waits() -> None:
    last = run(Klass(threshold=0.96), *[beliefs(0.95, 0.97, 0.5)] * 4)[-1]
    assert last.chosen.tolist() == [[False, True, False]]
    assert last.waiting.reason[0, 0] == Reason.UNCERTAIN


def test_without_a_stable_position_the_k_surest() -> None:
    assert run(Klass(k=2), beliefs(0.4, 0.6, 0.5))[0].chosen.tolist() == [[False, True, True]]


def test_memory_belongs_to_the_row_also_when_others_finish_early() -> None:
    world = tabular(random_table(6, 3, generator(3), sparsity=0.6, sharpness=2.0))
    own, rule = world.support[:12], Klass(threshold=0.5, drift=0.2)
    hidden = torch.arange(6) < torch.arange(12)[:, None] % 6 + 1  # 1 to 6 unknowns: rows leave at different times
    tokens = torch.where(hidden, 3, own)
    together = decode(world, tokens, rule, Sampling(seed=4))
    assert len(together.passes.unique()) > 2
    for row in range(12):
        alone = decode(world, tokens[[row]], rule, Sampling(seed=4), index=torch.tensor([row]))
        assert torch.equal(alone.tokens[0], together.tokens[row])
        assert alone.passes[0] == together.passes[row]


@pytest.mark.parametrize(("name", "value", "minimum"), [("threshold", -1.0, 0), ("drift", -1.0, 0), ("history", 0, 1), ("k", 0, 1)])
def test_refuses_parameters_below_their_minimum(name: str, value: float, minimum: int) -> None:
    with pytest.raises(PairmiError, match=rf"^Klass\({name}={value}\): {name} must be >= {minimum}"):
        Klass(**{name: value})
