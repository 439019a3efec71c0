import pytest
import torch

from pairmi.selectors.independent_set import First, IndependentSet
from pairmi.types import PairmiError, Reason
from rules import Given, situation
from selectors_reference import independent


@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("by", ["confidence", "information"])
def test_equals_a_greedy_search_and_is_maximal(by: First, threshold: float) -> None:
    given = situation(100)
    selection = IndependentSet(Given(given.mi), threshold, by)(given.turn())
    for row in range(len(given.masked)):
        order = selection.order[row].tolist()
        expected = independent(given, row, threshold, by)
        assert [order.index(n) for n in range(len(expected))] == expected
        chosen = selection.chosen[row]
        assert chosen.nonzero()[:, 0].tolist() == sorted(expected)
        assert given.mi[row][chosen][:, chosen].max() <= threshold + 1e-9
        left_out = given.masked[row] & ~chosen
        assert (given.mi[row][left_out][:, chosen].amax(1) > threshold).all() if left_out.any() else True


@pytest.mark.parametrize("threshold", [0.0, 1e9])
def test_given_positions_stay_when_candidates_run_out(threshold: float) -> None:
    given = situation()
    masked = torch.zeros_like(given.masked)
    masked[torch.arange(len(masked)), torch.arange(len(masked)) % masked.shape[1]] = True  # one open position a row
    nearly_full = type(given)(given.log_probs, masked, given.mi)
    selection = IndependentSet(Given(torch.zeros_like(given.mi)), threshold)(nearly_full.turn())
    assert torch.equal(selection.chosen, masked)


def test_a_position_waits_for_the_one_it_depends_on() -> None:
    given = situation()
    selection = IndependentSet(Given(given.mi), 0.0)(given.turn())
    waits = given.masked & ~selection.chosen
    assert (selection.waiting.reason[waits] == Reason.DEPENDENT).all()
    for row, position in waits.nonzero().tolist():
        shared = torch.where(selection.chosen[row], given.mi[row, position], 0)
        assert selection.waiting.blocker[row, position] == shared.argmax()
        assert selection.waiting.amount[row, position] == shared.max()


def test_refuses_a_negative_threshold() -> None:
    with pytest.raises(PairmiError, match=r"^IndependentSet\(threshold=-0.1\): threshold must be >= 0 nats$"):
        IndependentSet(Given(torch.zeros(1, 1, 1)), -0.1)


def test_refuses_an_unknown_order(unchecked: None) -> None:
    with pytest.raises(PairmiError, match=r"^IndependentSet\(by='luck'\): by must be one of confidence, information$"):
        IndependentSet(Given(torch.zeros(1, 1, 1)), by="luck")
