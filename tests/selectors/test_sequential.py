import pytest
import torch

from pairmi.selectors.ranking import By
from pairmi.selectors.top_k import Sequential, TopK
from pairmi.types import PairmiError
from rules import situation


@pytest.mark.parametrize("by", ["confidence", "margin", "entropy", "random"])
def test_is_top_k_with_one(by: By) -> None:
    given = situation()
    one, reference = Sequential(by)(given.turn()), TopK(1, by)(given.turn())
    assert (one.chosen.sum(1) == 1).all()
    assert torch.equal(one.chosen, reference.chosen)


def test_entropy_order_takes_the_least_uncertain() -> None:
    given = situation()
    chosen = Sequential("entropy")(given.turn()).chosen
    smallest = torch.where(given.masked, given.entropies, torch.inf).amin(1)
    assert torch.equal(given.entropies[chosen], smallest)


def test_refuses_an_unknown_order(unchecked: None) -> None:
    with pytest.raises(PairmiError, match=r"^Sequential\(by='luck'\): by must be one of confidence, margin, entropy, random$"):
        Sequential("luck")
