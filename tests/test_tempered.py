import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pairmi.info import entropy
from pairmi.tempered import Tempered
from pairmi.types import Backbone, PairmiError
from worlds import Incoherent, Recipe, many, recipes, unknown

MODEL = Incoherent(3, 4, seed=0, sharpness=2.0)


def test_temperature_one_changes_nothing() -> None:
    tokens = unknown(MODEL)
    assert torch.equal(Tempered(MODEL, 1.0)(tokens).log_probs, MODEL(tokens).log_probs)


@many(100)
@given(recipes(), st.floats(0.05, 20))
def test_is_the_power_of_the_probabilities_normalised(recipe: Recipe, temperature: float) -> None:
    table, tokens = recipe.coherent()
    prediction = table(tokens)
    power = prediction.log_probs.exp() ** (1 / temperature)
    tempered = Tempered(table, temperature)(tokens)
    torch.testing.assert_close(tempered.log_probs.exp(), power / power.sum(-1, keepdim=True), atol=1e-9, rtol=0)
    assert torch.equal(tempered.hidden, prediction.hidden)
    assert torch.equal(tempered.tokens, tokens)


def test_limits_are_the_likeliest_symbol_and_the_uniform_distribution() -> None:
    tokens = unknown(MODEL)
    cold, hot = (Tempered(MODEL, temperature)(tokens).log_probs for temperature in (1e-4, 1e6))
    torch.testing.assert_close(cold.exp(), torch.nn.functional.one_hot(MODEL(tokens).log_probs.argmax(-1), 4).double())
    torch.testing.assert_close(entropy(hot), torch.full((1, 3), math.log(4), dtype=torch.float64))


def test_is_itself_a_backbone() -> None:
    tempered = Tempered(MODEL, 0.5)
    assert isinstance(tempered, Backbone)
    assert (tempered.vocab, tempered.length) == (MODEL.vocab, 3)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.inf, math.nan])
def test_refuses_what_is_no_temperature(temperature: float) -> None:
    with pytest.raises(PairmiError, match=f"temperature={temperature}: must be a number above 0; for the likeliest symbol use greedy"):
        Tempered(MODEL, temperature)
