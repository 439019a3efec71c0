import pytest
import torch

from pairmi.selectors.threshold import Threshold
from pairmi.types import PairmiError, Reason
from rules import situation
from selectors_reference import surest


@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.9, 0.99, 1.5])
def test_fills_all_that_are_sure_and_the_surest_always(threshold: float) -> None:
    given = situation()
    selection = Threshold(threshold)(given.turn())
    for row, sure in enumerate(given.confidence.tolist()):
        order = surest(given, row, "confidence")
        expected = {order[0]} | {i for i in order if sure[i] >= threshold}
        assert set(selection.chosen[row].nonzero()[:, 0].tolist()) == expected


def test_the_others_are_too_uncertain() -> None:
    given = situation()
    selection = Threshold(0.9)(given.turn())
    waits = given.masked & ~selection.chosen
    assert (selection.waiting.reason[waits] == Reason.UNCERTAIN).all()
    torch.testing.assert_close(selection.waiting.amount[waits], 1 - given.confidence[waits])


def test_refuses_a_negative_threshold() -> None:
    with pytest.raises(PairmiError, match=r"^Threshold\(threshold=-0.1\): threshold must be >= 0$"):
        Threshold(-0.1)
