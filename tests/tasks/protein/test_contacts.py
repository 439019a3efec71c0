import numpy as np
import pytest

from pairmi.tasks.protein.contacts import apc, chance, precision
from pairmi.types import PairmiError


def test_apc_removes_what_each_position_has_in_common_with_all() -> None:
    rng = np.random.default_rng(0)
    strength = rng.random(30) + 0.5
    product = np.outer(strength, strength) * (1 - np.eye(30))
    assert np.abs(apc(product)).max() < 0.12 * product.max()
    planted = product.copy()
    planted[3, 20] = planted[20, 3] = planted[3, 20] + 1
    corrected = apc(planted)
    assert np.unravel_index(corrected.argmax(), corrected.shape) == (3, 20)
    assert not np.diag(corrected).any()
    assert not apc(np.zeros((4, 4))).any()


def test_apc_by_its_definition() -> None:
    rng = np.random.default_rng(1)
    scores = rng.random((5, 5))
    scores = (scores + scores.T) * (1 - np.eye(5))
    expected = np.zeros((5, 5))
    mean = [sum(scores[i, j] for j in range(5) if j != i) / 4 for i in range(5)]
    for i in range(5):
        for j in range(5):
            if i != j:
                expected[i, j] = scores[i, j] - mean[i] * mean[j] / (sum(mean) / 5)
    np.testing.assert_allclose(apc(scores), expected)


def test_precision_looks_at_the_strongest_pairs_far_enough_apart() -> None:
    contacts, scores = np.zeros((10, 10), dtype=bool), np.zeros((10, 10))
    contacts[0, 7] = contacts[7, 0] = True
    scores[0, 1], scores[0, 7], scores[1, 8] = 9, 3, 2
    assert precision(scores, contacts, 6, 1) == 1
    assert precision(scores, contacts, 6, 2) == 0.5
    assert chance(contacts, 6) == 1 / 10
    with pytest.raises(PairmiError, match="a sequence of 10 residues has no pairs 24 apart"):
        precision(scores, contacts, 24, 5)
