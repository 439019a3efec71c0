import numpy as np
import pytest

from pairmi.tasks.protein.contacts import chance, precision
from pairmi.types import PairmiError


def test_precision_looks_at_the_strongest_pairs_far_enough_apart() -> None:
    contacts, scores = np.zeros((10, 10), dtype=bool), np.zeros((10, 10))
    contacts[0, 7] = contacts[7, 0] = True
    scores[0, 1], scores[0, 7], scores[1, 8] = 9, 3, 2
    assert precision(scores, contacts, 6, 1) == 1
    assert precision(scores, contacts, 6, 2) == 0.5
    assert chance(contacts, 6) == 1 / 10
    with pytest.raises(PairmiError, match="a sequence of 10 residues has no pairs 24 apart"):
        precision(scores, contacts, 24, 5)
