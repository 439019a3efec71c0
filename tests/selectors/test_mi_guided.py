import pytest
import torch

from pairmi.info import entropy
from pairmi.selectors.mi_guided import MIGuided
from pairmi.types import PairmiError, Reason
from rules import Given, Situation, beliefs, situation
from selectors_reference import guided

OPEN = torch.ones(1, 3, dtype=torch.bool)


@pytest.mark.parametrize("penalty", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("budget", [0.0, 0.3, 1.0, 3.0])
def test_equals_algorithm_1(budget: float, penalty: float) -> None:
    given = situation(100)
    selection = MIGuided(Given(given.mi), budget, penalty)(given.turn())
    for row in range(len(given.masked)):
        order = selection.order[row].tolist()
        expected = guided(given, row, budget, penalty)
        assert [order.index(n) for n in range(len(expected))] == expected
        assert selection.chosen[row].nonzero()[:, 0].tolist() == sorted(expected)


def three(dependence: float) -> Situation:
    """Rising entropy 0.056, 0.112, 0.168 or so; the first two depend on each other."""
    mi = torch.zeros(1, 3, 3).double()
    mi[0, 0, 1] = mi[0, 1, 0] = dependence
    return Situation(beliefs(0.99, 0.98, 0.97, size=2), OPEN, mi)


def test_a_rejected_candidate_is_skipped_and_names_its_blocker() -> None:
    given = three(0.5)
    selection = MIGuided(Given(given.mi), 0.4)(given.turn())
    assert selection.chosen.tolist() == [[True, False, True]]
    assert selection.order.tolist() == [[0, -1, 1]]
    assert selection.waiting.reason[0, 1] == Reason.DEPENDENT
    assert selection.waiting.blocker[0, 1] == 0
    assert selection.waiting.amount[0, 1] == 0.5


def test_without_the_dependence_it_is_taken() -> None:
    given = three(0.0)
    assert MIGuided(Given(given.mi), 0.4)(given.turn()).chosen.all()


def test_takes_its_first_candidate_if_none_fits() -> None:
    given = three(0.0)
    selection = MIGuided(Given(given.mi), 0.01)(given.turn())
    assert selection.chosen.tolist() == [[True, False, False]]
    assert (selection.waiting.reason[0, 1:] == Reason.UNCERTAIN).all()
    torch.testing.assert_close(selection.waiting.amount[0, 1:], entropy(given.log_probs)[0, 1:])


def test_waits_for_the_budget_where_it_would_have_fitted_alone() -> None:
    given = three(0.0)
    selection = MIGuided(Given(given.mi), 0.2)(given.turn())
    assert selection.chosen.tolist() == [[True, True, False]]
    assert selection.waiting.reason[0, 2] == Reason.BUDGET


@pytest.mark.parametrize(("budget", "penalty", "name"), [(-1.0, 1.0, "budget"), (1.0, -1.0, "penalty")])
def test_refuses_negative_parameters(budget: float, penalty: float, name: str) -> None:
    with pytest.raises(PairmiError, match=rf"^MIGuided\({name}=-1.0\): {name} must be >= 0"):
        MIGuided(Given(torch.zeros(1, 1, 1)), budget, penalty)
