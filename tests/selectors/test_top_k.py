import pytest
import torch

from pairmi.selectors.ranking import By
from pairmi.selectors.top_k import TopK
from pairmi.types import PairmiError, Reason
from rules import situation

SCORES = {
    "confidence": lambda p: p.amax(-1),
    "margin": lambda p: p.sort(-1).values[..., -1] - p.sort(-1).values[..., -2],
    "entropy": lambda p: torch.xlogy(p, p).sum(-1),
}


@pytest.mark.parametrize("k", [1, 2, 5, 50])
@pytest.mark.parametrize("by", SCORES)
def test_equals_its_definition(by: By, k: int) -> None:
    given = situation()
    selection = TopK(k, by)(given.turn())
    scores = SCORES[by](given.log_probs.exp())
    for row in range(len(scores)):
        best = sorted(given.masked[row].nonzero()[:, 0].tolist(), key=lambda i: -float(scores[row, i]))[:k]
        order = selection.order[row].tolist()
        assert [order.index(n) for n in range(len(best))] == best
        assert selection.chosen[row].nonzero()[:, 0].tolist() == sorted(best)


def test_the_others_are_outranked() -> None:
    given = situation()
    selection = TopK(2)(given.turn())
    assert (selection.waiting.reason[given.masked & ~selection.chosen] == Reason.OUTRANKED).all()


def test_random_order_prefers_no_position() -> None:
    given = situation(rows=4000, length=4)
    open_ = type(given)(given.log_probs, torch.ones_like(given.masked), given.mi)
    share = TopK(1, "random")(open_.turn()).chosen.double().mean(0)
    assert (share - 0.25).abs().max() < 0.035  # five standard errors


@pytest.mark.parametrize("k", [0, -3])
def test_refuses_to_take_nothing(k: int) -> None:
    with pytest.raises(PairmiError, match=rf"^TopK\(k={k}\): k must be >= 1$"):
        TopK(k)


def test_refuses_an_unknown_order(unchecked: None) -> None:
    with pytest.raises(PairmiError, match=r"^TopK\(by='luck'\): by must be one of"):
        TopK(2, "luck")
