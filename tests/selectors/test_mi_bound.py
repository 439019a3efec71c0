from dataclasses import replace

import pytest
import torch

from pairmi.backbones.tabular import Tabular
from pairmi.commit import Sampling
from pairmi.info import pairs
from pairmi.loading import load
from pairmi.model import Model
from pairmi.selectors.eb import EB
from pairmi.selectors.mi_bound import MIBound, Order
from pairmi.spec import rule
from pairmi.types import Meter, PairMatrix, PairmiError, Prediction, Reason, RowStreams
from rules import Given, Situation, beliefs, situation
from selectors_reference import bound, total_charge
from worlds import decode, unknown


@pytest.mark.parametrize(("penalty", "entropy_weight"), [(0.0, 0.0), (1.0, 0.0), (4.0, 0.0), (1.0, 0.2)])
@pytest.mark.parametrize("budget", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("order", ["lowest-entropy", "information", "certain-information", "highest-entropy"])
def test_equals_charges_recomputed_from_scratch(order: Order, budget: float, penalty: float, entropy_weight: float) -> None:
    given = situation(60)
    given.log_probs[:, 2] = torch.tensor([1.0, 0, 0, 0]).log()  # certain: shares nothing
    given.mi[:, 2], given.mi[:, :, 2] = 0, 0
    selection = MIBound(Given(given.mi), budget, penalty, order, entropy_weight)(given.turn())
    for row in range(len(given.masked)):
        taken = selection.order[row].tolist()
        expected = bound(given, row, budget, penalty, order, entropy_weight)
        assert [taken.index(n) for n in range(len(expected))] == expected
        assert selection.chosen[row].nonzero()[:, 0].tolist() == sorted(expected)
        assert total_charge(given, row, expected, penalty, entropy_weight) <= budget + 1e-9


@pytest.mark.parametrize("penalty", [0.5, 1.0, 1e9])
@pytest.mark.parametrize("budget", [0.0, 0.1, 0.5, 2.0])
def test_is_never_more_conservative_than_eb(budget: float, penalty: float) -> None:
    given = situation()
    ours, theirs = MIBound(Given(given.mi), budget, penalty)(given.turn()).chosen, EB(budget)(given.turn()).chosen
    assert not (theirs & ~ours).any()
    assert (ours & ~theirs).any()


@pytest.mark.parametrize("budget", [0.0, 0.1, 0.5, 2.0])
def test_equals_eb_where_all_depend_and_the_penalty_is_huge(budget: float) -> None:
    given = situation(dense=True)
    ours, theirs = MIBound(Given(given.mi), budget, 1e12)(given.turn()), EB(budget)(given.turn())
    assert torch.equal(ours.chosen, theirs.chosen)
    assert torch.equal(ours.order, theirs.order)


def test_opens_uncertain_but_independent_positions_at_once() -> None:
    given = Situation(beliefs(0.34, 0.34, 0.34), torch.ones(1, 3, dtype=torch.bool), torch.zeros(1, 3, 3).double())
    assert MIBound(Given(given.mi), 0.0)(given.turn()).chosen.all()
    assert EB(0.0)(given.turn()).chosen.sum() == 1


def test_belief_charges_for_uncertainty_itself() -> None:
    given = Situation(beliefs(0.34, 0.34, 0.34), torch.ones(1, 3, dtype=torch.bool), torch.zeros(1, 3, 3).double())
    selection = MIBound(Given(given.mi), 0.3, entropy_weight=0.2)(given.turn())  # 0.22 nats for each but the first
    assert selection.chosen.sum() == 2
    assert (selection.waiting.reason == Reason.BUDGET).sum() == 1


def test_names_who_blocks_and_by_how_much() -> None:
    mi = torch.zeros(1, 4, 4).double()
    mi[0, 0, 1] = mi[0, 1, 0] = 0.3
    mi[0, 2, 1] = mi[0, 1, 2] = 0.2
    given = Situation(beliefs(0.9, 0.7, 0.8, 1.0), torch.tensor([[True, True, True, False]]), mi)
    selection = MIBound(Given(mi), 0.1)(given.turn())
    assert selection.chosen.tolist() == [[True, False, True, False]]
    assert selection.waiting.reason.tolist() == [[Reason.FILLED, Reason.DEPENDENT, Reason.FILLED, Reason.GIVEN]]
    assert selection.waiting.blocker.tolist() == [[-1, 0, -1, -1]]
    assert selection.waiting.amount[0, 1] == 0.3


@pytest.mark.parametrize("name", ["budget", "penalty", "entropy_weight"])
def test_refuses_negative_parameters(name: str) -> None:
    with pytest.raises(PairmiError, match=rf"^MIBound\({name}=-1.0\): {name} must be >= 0"):
        MIBound(Given(torch.zeros(1, 1, 1)), **{name: -1.0})


def test_refuses_an_unknown_order(unchecked: None) -> None:
    with pytest.raises(
        PairmiError,
        match=r"^MIBound\(order='luck'\): order must be one of lowest-entropy, information, certain-information, highest-entropy$",
    ):
        MIBound(Given(torch.zeros(1, 1, 1)), order="luck")


BUDGETS = {"mi-guided": {"budget": 3.0}, "demask": {"budget": 3.0}, "independent-set": {}, "mi-bound": {"budget": 0.5}}


@pytest.mark.parametrize("name", ["mi-guided:penalty=1", "demask", "independent-set", "mi-bound"])
def test_infinite_dependence_blocks_only_those_that_share_it(name: str) -> None:
    """Positions 0 and 1 rule each other out, 2 and 3 are free: two passes."""

    class Infinite:
        def __call__(self, prediction: Prediction, backbone: Meter, rng: RowStreams) -> PairMatrix:
            found = torch.zeros(len(prediction.tokens), 4, 4, dtype=torch.float64)
            found[:, 0, 1] = found[:, 1, 0] = torch.inf
            return torch.where(pairs(prediction.queried), found, 0)

    world = Tabular(torch.cartesian_prod(*[torch.arange(2)] * 4), torch.ones(16).double(), ("a", "b"))
    selector = replace(rule(name, Model(world)), mi=Infinite(), **BUDGETS[name.split(":")[0]])
    assert decode(world, unknown(world), selector, Sampling()).passes.tolist() == [2]


def test_a_weight_is_a_finite_number() -> None:
    with pytest.raises(PairmiError, match=r"^MIBound\(penalty=inf\): penalty must be finite; to allow no dependence, budget=0$"):
        rule("mi-bound:penalty=inf", load("xor"))
