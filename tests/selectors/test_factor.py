import pytest
import torch

from pairmi.selectors.factor import Factor
from pairmi.types import PairmiError, Reason
from rules import Situation, beliefs, situation
from selectors_reference import surest


@pytest.mark.parametrize("factor", [0.0, 0.05, 0.5, 1.5, 100.0])
def test_is_the_longest_run_of_members_that_all_hold(factor: float) -> None:
    given = situation()
    selection = Factor(factor)(given.turn())
    for row, sure in enumerate(given.confidence.tolist()):
        order, count = surest(given, row, "confidence"), 0
        while count < len(order) and (count + 2) * (1 - sure[order[count]]) <= factor:
            count += 1
        assert selection.chosen[row].nonzero()[:, 0].tolist() == sorted(order[: max(count, 1)])


def test_a_failing_last_member_is_not_accepted() -> None:
    log_probs = beliefs(0.99, 0.98, 0.5)  # 2 * 0.01 and 3 * 0.02 hold; 4 * 0.5 does not
    given = Situation(log_probs, torch.ones(1, 3, dtype=torch.bool), torch.zeros(1, 3, 3))
    selection = Factor(0.1)(given.turn())
    assert selection.chosen.tolist() == [[True, True, False]]
    assert selection.waiting.reason[0, 2] == Reason.UNCERTAIN


def test_refuses_a_negative_factor() -> None:
    with pytest.raises(PairmiError, match=r"^Factor\(factor=-0.1\): factor must be >= 0$"):
        Factor(-0.1)
