import pytest
import torch

from pairmi.selectors.demask import Demask
from pairmi.types import PairmiError, Reason
from rules import Given, situation


@pytest.mark.parametrize("budget", [0.0, 0.05, 0.5, 5.0])
@pytest.mark.parametrize("confidence", [0.0, 0.5])
def test_equals_the_plain_greedy_search(budget: float, confidence: float) -> None:
    given = situation(100)
    sure = given.log_probs.double().exp().amax(-1)
    selection = Demask(Given(given.mi), budget, confidence)(given.turn())
    for row in range(len(given.masked)):
        open_positions = given.masked[row].nonzero()[:, 0].tolist()
        members: list[int] = []
        spent = 0.0
        for i in sorted(open_positions, key=lambda i: (-float(sure[row, i]), i)):
            cost = sum(float(given.mi[row, i, j]) for j in members)
            if spent + cost <= budget + 1e-9 and float(sure[row, i]) >= confidence:
                members.append(i)
                spent += cost
        first = sorted(open_positions, key=lambda i: (-float(sure[row, i]), i))[:1]
        expected = members or first
        order = selection.order[row].tolist()
        assert [order.index(n) for n in range(len(expected))] == expected
        assert int(selection.chosen[row].sum()) == len(expected)
        together = torch.triu(given.mi[row][selection.chosen[row]][:, selection.chosen[row]], 1).sum()
        assert float(together) <= budget + 1e-9


def test_who_is_not_sure_enough_waits_for_that_reason() -> None:
    given = situation()
    selection = Demask(Given(torch.zeros_like(given.mi)), 1.0, 1.0)(given.turn())
    waits = given.masked & ~selection.chosen
    assert bool(waits.any())
    assert (selection.waiting.reason[waits] == Reason.UNCERTAIN).all()


@pytest.mark.parametrize(("name", "options"), [("budget", {"budget": -1.0}), ("confidence", {"confidence": -0.1})])
def test_bad_parameters_are_refused(name: str, options: dict[str, float]) -> None:
    with pytest.raises(PairmiError, match=rf"Demask\({name}=-.*must be >= 0"):
        Demask(Given(torch.zeros(1, 2, 2)), **options)
