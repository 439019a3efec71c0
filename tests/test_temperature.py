"""Temperature is for the draw alone: a rule judges by the model's own probabilities, so that T -> 0 approaches greedy decoding."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import pairmi
from pairmi.commit import Sampling
from pairmi.draw import tempered
from pairmi.info import entropy
from pairmi.loading import load
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.tasks.sudoku.rules import conflict
from pairmi.types import PairmiError
from worlds import Incoherent, many, unknown

MODEL = Incoherent(3, 4, seed=0, sharpness=2.0)
SUDOKU4 = load("sudoku4")


@given(st.floats(0.01, 100))
@many(50)
def test_probabilities_to_the_power_and_normalised(temperature: float) -> None:
    plain = MODEL(unknown(MODEL)).log_probs
    expected = plain.exp() ** (1 / temperature)
    assert torch.allclose(tempered(plain, temperature).exp(), expected / expected.sum(-1, keepdim=True), atol=1e-12)


def test_temperature_one_changes_no_bit() -> None:
    plain = MODEL(unknown(MODEL)).log_probs
    assert tempered(plain, 1.0) is plain


def test_entropy_grows_with_temperature() -> None:
    plain = MODEL(unknown(MODEL)).log_probs
    assert (entropy(tempered(plain, 0.5)) < entropy(plain)).all()
    assert (entropy(tempered(plain, 2.0)) > entropy(plain)).all()


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.inf, math.nan])
def test_what_is_no_temperature_is_refused(temperature: float) -> None:
    with pytest.raises(PairmiError, match="must be a number above 0; for the likeliest symbol use greedy"):
        Sampling(temperature=temperature)


@pytest.mark.parametrize("verify", [False, True], ids=["plain", "verified"])
@pytest.mark.parametrize("name", CATALOGUE)
def test_a_rule_sees_the_same_whatever_the_temperature(name: str, verify: bool) -> None:
    """The first choice is made from the same probabilities, so at any temperature the same positions are filled first."""
    empty = SUDOKU4.length * "."
    drafts = [pairmi.decode(SUDOKU4, empty, name, temperature=t, steps=True, verify=verify).steps[0].filled for t in (1.0, 0.05)]
    if verify:  # a draft may be cut short
        assert drafts[0].keys() <= drafts[1].keys() or drafts[1].keys() <= drafts[0].keys()
    else:
        assert drafts[0].keys() == drafts[1].keys()


@pytest.mark.parametrize("temperature", [0.5, 0.2, 0.12, 0.05, 0.01, 0.001])
@pytest.mark.parametrize("spec", ["eb", "threshold", "mi-guided", "mi-bound:budget=0"])
def test_low_temperatures_do_not_destroy_boards(spec: str, temperature: float) -> None:
    """A rule that loses nothing at temperature 1 loses nothing near 0: 0 of 100 boards were valid once, below 0.12."""
    boards = pairmi.decode(SUDOKU4, [16 * "."] * 40, spec, temperature=temperature)
    assert all(conflict(board.tokens, 2) is None for board in boards)


def test_near_zero_the_likeliest_symbols_are_drawn() -> None:
    """On a world without ties, temperature 1e-4 gives what greedy gives, for every rule."""
    model = load("table")
    canvases = [model.length * ".", "1" + (model.length - 1) * "."]
    for name in CATALOGUE:
        cold, greedy = (pairmi.decode(model, canvases, name, **how) for how in ({"temperature": 1e-4}, {"greedy": True}))
        assert [out.text for out in cold] == [out.text for out in greedy], name
