import pytest
import torch

from pairmi.selectors.eb import EB
from pairmi.selectors.ranking import By, greedily, ranked, score, take, waiting_for
from pairmi.types import PairmiError, Reason
from rules import Situation, beliefs, situation


def test_masked_positions_come_first_and_equals_from_left_to_right() -> None:
    scores = torch.tensor([[9.0, 1, 2, 2, 1]])
    masked = torch.tensor([[False, True, True, True, True]])
    assert ranked(scores, masked).tolist() == [[2, 3, 1, 4, 0]]


@pytest.mark.parametrize("by", ["confidence", "margin", "entropy"])
def test_a_score_is_higher_the_surer_the_model_is(by: By) -> None:
    given = situation()
    certain, torn = beliefs(0.98, 0.4), situation(1, 2)
    scores = score(by, type(torn)(certain, torn.masked, torn.mi).turn())
    assert scores[0, 0] > scores[0, 1]
    assert score(by, given.turn()).shape == given.masked.shape


def test_random_scores_belong_to_the_turn() -> None:
    given = situation()
    first, again, later = (score("random", given.turn(number=number)) for number in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, later)


def test_take_takes_the_first_and_at_least_one() -> None:
    order, masked = torch.tensor([[2, 0, 1], [1, 2, 0]]), torch.tensor([[True, True, True], [False, True, True]])
    chosen = take(order, torch.tensor([2, 0]), masked, Reason.OUTRANKED, torch.zeros(2, 3))
    assert chosen.chosen.tolist() == [[True, False, True], [False, True, False]]
    assert chosen.order.tolist() == [[1, -1, 0], [-1, 0, -1]]
    assert chosen.waiting.reason.tolist() == [
        [Reason.FILLED, Reason.OUTRANKED, Reason.FILLED],
        [Reason.GIVEN, Reason.FILLED, Reason.OUTRANKED],
    ]
    assert (chosen.waiting.blocker == -1).all()


def test_take_never_takes_a_known_position() -> None:
    order, masked = torch.tensor([[1, 0, 2]]), torch.tensor([[False, True, False]])
    assert take(order, torch.tensor([3]), masked, Reason.OUTRANKED, torch.zeros(1, 3)).chosen.tolist() == [[False, True, False]]


def test_greedily_takes_the_first_where_nothing_is_admitted_and_nothing_where_nothing_is_open() -> None:
    order, masked = torch.tensor([[1, 0, 2], [0, 1, 2]]), torch.tensor([[True, True, False], [False, False, False]])
    carry = torch.zeros(2, 1).double()
    turn = Situation(torch.full((2, 3, 2), 0.5).log(), masked, torch.zeros(2, 3, 3)).turn()
    chosen, taken, after = greedily(
        order, turn, torch.zeros(2, 3, 3), carry, lambda candidate, relation, chosen, carry: (candidate < 0, carry + 1)
    )
    assert chosen.tolist() == [[False, True, False], [False, False, False]]
    assert taken.tolist() == [[-1, 0, -1], [-1, -1, -1]]
    assert torch.equal(after, carry)  # what was not admitted is not charged


def test_waiting_names_the_strongest_of_those_that_were_filled() -> None:
    mi = torch.zeros(1, 4, 4)
    mi[0, 0, 1], mi[0, 0, 2], mi[0, 0, 3] = 0.9, 0.2, 0.5  # 1 depends most, but waits itself
    masked, chosen = torch.ones(1, 4, dtype=torch.bool), torch.tensor([[False, False, True, True]])
    otherwise, amount = torch.full((1, 4), int(Reason.BUDGET)), torch.full((1, 4), 7.0).double()
    waiting = waiting_for(masked, chosen, mi, otherwise, masked, amount)
    assert waiting.reason.tolist() == [[Reason.DEPENDENT, Reason.BUDGET, Reason.FILLED, Reason.FILLED]]
    assert waiting.blocker.tolist() == [[3, -1, -1, -1]]
    assert waiting.amount[0, :2].tolist() == [0.5, 7]


@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_a_parameter_below_its_minimum_is_named(value: float) -> None:
    with pytest.raises(PairmiError, match=rf"^EB\(budget={value}\): budget must be >= 0 nats$"):
        EB(budget=value)
