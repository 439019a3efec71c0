import pytest
import torch

from pairmi.selectors.eb import EB, Proxy
from pairmi.types import PairmiError, Reason
from rules import situation
from selectors_reference import surest


@pytest.mark.parametrize("budget", [0.0, 0.1, 0.7, 3.0, 50.0])
@pytest.mark.parametrize("by", ["entropy", "confidence", "margin"])
def test_is_the_longest_prefix_whose_entropies_without_the_largest_fit(by: Proxy, budget: float) -> None:
    given = situation()
    selection = EB(budget, by)(given.turn())
    for row, entropies in enumerate(given.entropies.tolist()):
        order = surest(given, row, by)
        fitting = [n for n in range(1, len(order) + 1) if sum(e := [entropies[i] for i in order[:n]]) - max(e) <= budget + 1e-9]
        assert selection.chosen[row].nonzero()[:, 0].tolist() == sorted(order[: max(fitting)])
        assert [int(selection.order[row, i]) for i in order[: max(fitting)]] == list(range(max(fitting)))


def test_says_what_would_have_been_needed() -> None:
    """The entropies up to a position, without the largest: what the budget would have had to be."""
    given = situation()
    selection = EB(0.1)(given.turn())
    waits = given.masked & ~selection.chosen
    assert (selection.waiting.reason[waits] == Reason.BUDGET).all()
    for row, position in torch.nonzero(waits).tolist():
        order = surest(given, row, "entropy")
        before = [float(given.entropies[row, i]) for i in order[: order.index(position) + 1]]
        assert float(selection.waiting.amount[row, position]) == pytest.approx(sum(before) - max(before))
        assert float(selection.waiting.amount[row, position]) > 0.1


def test_refuses_a_negative_budget() -> None:
    with pytest.raises(PairmiError, match=r"^EB\(budget=-1.0\): budget must be >= 0 nats$"):
        EB(-1.0)


def test_refuses_an_unknown_proxy(unchecked: None) -> None:
    with pytest.raises(PairmiError, match=r"^EB\(by='random'\): by must be one of entropy, confidence, margin$"):
        EB(0.1, "random")
