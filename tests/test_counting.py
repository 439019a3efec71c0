import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import pairmi
from pairmi.counting import Counting, joined
from pairmi.tasks.tables import parity
from pairmi.types import Backbone, PairmiError, Prediction, Tokens, Vocab
from worlds import Fixed, Incoherent, Listening, many, tabular, unknown


@many(50)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(1, 12))
def test_counts_calls_and_rows_however_they_are_cut(sizes: list[int], piece: int) -> None:
    model = Incoherent(3, 2, seed=0, sharpness=1.0)
    meter = Counting(model, piece)
    for size in sizes:
        tokens = torch.arange(size)[:, None] // torch.tensor([1, 3, 9]) % 3
        assert torch.equal(meter(tokens).log_probs, model(tokens).log_probs) if size else meter(tokens).log_probs.shape == (0, 3, 2)
    assert (meter.calls, meter.rows) == (len(sizes), sum(sizes))


def test_large_calls_are_evaluated_in_pieces() -> None:
    model = Listening(Incoherent(3, 2, seed=0, sharpness=1.0))
    meter = Counting(model, piece=4)
    meter(torch.full((10, 3), 2))
    assert model.heard == [4, 4, 2]
    assert (meter.calls, meter.rows) == (1, 10)


def test_joined_keeps_the_order() -> None:
    model = Incoherent(2, 3, seed=1, sharpness=1.0)
    tokens = torch.tensor([[0, 1], [2, 3], [3, 3]])
    whole, parts = model(tokens), joined([model(tokens[:1]), model(tokens[1:])])
    assert torch.equal(whole.tokens, parts.tokens)
    assert torch.equal(whole.log_probs, parts.log_probs)
    assert torch.equal(whole.hidden, parts.hidden)
    assert parts.attention is None


def test_joined_keeps_the_attention() -> None:
    prediction = replace(Incoherent(2, 3, seed=1, sharpness=1.0)(torch.full((3, 2), 3)), attention=torch.arange(12.0).view(3, 2, 2))
    parts = joined([prediction.rows(torch.tensor([0])), prediction.rows(torch.tensor([1, 2]))])
    assert torch.equal(parts.attention, prediction.attention)


def test_is_itself_a_backbone() -> None:
    world = tabular(parity(3))
    meter = Counting(world)
    assert isinstance(meter, Backbone)
    assert (meter.vocab, meter.length) == (world.vocab, 3)


EVEN = torch.tensor([[0.5, 0.5], [0.5, 0.5]]).log()


@pytest.mark.parametrize(
    ("log_probs", "message"),
    [
        (torch.tensor([[0.0, -1], [0, -1]]), "row 0, position 0 sum to 1.368, expected 1; .* never logits"),
        (EVEN.index_fill(0, torch.tensor(1), math.nan), "row 0, position 1 sum to nan, expected 1"),
        (EVEN.index_fill(0, torch.tensor(1), math.inf), "row 0, position 1 sum to inf, expected 1"),
        (EVEN.index_fill(0, torch.tensor(1), -math.inf), "row 0, position 1 sum to 0, expected 1"),
        (EVEN.repeat(1, 2) - math.log(2), r"expected log-probabilities of shape \[3, 2, 2\], got \[3, 2, 4\]"),
        (EVEN.repeat(2, 1), r"expected log-probabilities of shape \[3, 2, 2\], got \[3, 4, 2\]"),
    ],
)
def test_refuses_what_is_not_a_prediction_and_names_the_backbone(log_probs: torch.Tensor, message: str) -> None:
    with pytest.raises(PairmiError, match=f"^Fixed: .*{message}"):
        Counting(Fixed(log_probs, 2))(torch.full((3, 2), 2))


class Answering:
    """Two coins, of which a user says what `answer` makes of the log-probabilities."""

    vocab, length = Vocab(("h", "t")), 2

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __call__(self, tokens: Tokens) -> Any:
        return self.answer(tokens, torch.full((*tokens.shape, 2), 0.5).log())


WAYS = [
    lambda model: pairmi.mutual_information(model, ".."),
    lambda model: pairmi.mutual_information(model, "..", block=1),
    lambda model: pairmi.decode(model, "..", "top-k", verify=True),
    lambda model: pairmi.decode(pairmi.Model(model), "..", "top-k:block=1"),
    lambda model: pairmi.price(model, "..", "top-k", sequences=2),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda tokens, said: said, r"a Prediction, got Tensor; return pairmi.types.Prediction\(tokens, log_probs, hidden\)"),
        (lambda tokens, said: (said, said), "a Prediction, got tuple; return pairmi.types.Prediction"),
        (lambda tokens, said: None, "a Prediction, got NoneType; return pairmi.types.Prediction"),
        (
            lambda tokens, said: Prediction(tokens, said.numpy(), said),
            "log_probs as a torch tensor, got ndarray; torch.as_tensor",
        ),
        (lambda tokens, said: Prediction(tokens, said, np.zeros(tokens.shape)), "hidden as a torch tensor, got ndarray"),
        (
            lambda tokens, said: Prediction(tokens, said, None),
            "hidden states, got None; give them, or a tensor of width 0: log_probs",
        ),
    ],
)
def test_refuses_what_is_no_prediction_whoever_asks(answer: Any, message: str, way: Any, unchecked: None) -> None:
    with pytest.raises(PairmiError, match=f"^Answering: expected {message}"):
        way(Answering(answer))


@pytest.mark.parametrize("way", WAYS)
def test_hidden_states_may_have_no_width(way: Any) -> None:
    assert way(Answering(lambda tokens, said: Prediction(tokens, said, said[..., :0]))) is not None


def test_takes_impossible_symbols_and_float32_rounding() -> None:
    log_probs = torch.tensor([[1, 0], [0.3, 0.7]]).log() + 1e-6
    assert torch.equal(Counting(Fixed(log_probs, 2))(unknown(Fixed(log_probs, 2))).log_probs[0], log_probs)
