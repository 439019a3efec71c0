import math

import pytest
import torch

from pairmi.commit import Sampling
from pairmi.decoding import iter_decode
from pairmi.selectors.maskgit import MaskGIT
from pairmi.tasks.tables import permutations
from pairmi.types import PairmiError, Prediction, Tokens, Vocab
from rules import Situation, situation
from worlds import tabular


class Torn:
    """A backbone of any length that knows nothing."""

    vocab, length = Vocab(("a", "b")), None

    def __call__(self, tokens: Tokens) -> Prediction:
        log_probs = torch.full((*tokens.shape, 2), 0.5).double().log()
        return Prediction(tokens, log_probs, log_probs)


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 6, 12])
@pytest.mark.parametrize("unknown", [12, 16, 81])
def test_ends_in_exactly_so_many_passes_on_the_cosine_schedule(steps: int, unknown: int) -> None:
    passes = list(iter_decode(Torn(), torch.full((2, unknown), 2), MaskGIT(steps), Sampling()))
    left = [int((step.tokens[0] == 2).sum()) for step in passes]
    expected, open_ = [], unknown
    for t in range(1, steps + 1):
        open_ = min(open_ - 1, math.floor(unknown * math.cos(math.pi * t / (2 * steps)) + 1e-9))
        expected.append(open_)
    assert left == expected
    assert left[-1] == 0


def test_with_more_steps_than_unknowns_one_at_a_time() -> None:
    world = tabular(permutations(4))
    assert len(list(iter_decode(world, torch.full((1, 4), 4), MaskGIT(steps=100), Sampling()))) == 4


def test_without_noise_the_surest_and_with_noise_others_too() -> None:
    given = situation()
    open_ = Situation(given.log_probs, torch.ones_like(given.masked), given.mi)
    plain, noisy = (MaskGIT(16, noise)(open_.turn()) for noise in (0.0, 5.0))
    assert torch.equal((plain.order == 0).long().argmax(1), given.confidence.argmax(1))
    assert not torch.equal(plain.order, noisy.order)


def test_the_noise_is_gone_in_the_last_pass() -> None:
    given = situation()
    open_ = Situation(given.log_probs, torch.ones_like(given.masked), given.mi)
    first = MaskGIT(1, 50.0)(open_.turn())
    assert torch.equal((first.order == 0).long().argmax(1), given.confidence.argmax(1))


@pytest.mark.parametrize(("name", "value", "minimum"), [("steps", 0, 1), ("noise", -0.5, 0)])
def test_refuses_parameters_below_their_minimum(name: str, value: float, minimum: int) -> None:
    with pytest.raises(PairmiError, match=rf"^MaskGIT\({name}={value}\): {name} must be >= {minimum}$"):
        MaskGIT(**{name: value})
