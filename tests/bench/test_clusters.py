import math

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from pairmi.bench.sequence_sets import difference, distance, fit_clusters, jensen_shannon, noise_floor
from pairmi.types import PairmiError


def test_the_divergence_is_the_square_of_scipys_distance() -> None:
    rng = np.random.default_rng(0)
    p, q = rng.integers(0, 9, (20, 5)), rng.integers(1, 9, (20, 5))
    np.testing.assert_allclose(jensen_shannon(p, q), jensenshannon(p, q, axis=1) ** 2, atol=1e-12)
    assert jensen_shannon(np.array([3, 0]), np.array([0, 7])) == pytest.approx(math.log(2))
    assert jensen_shannon(np.array([2, 4]), np.array([1, 2])) == 0


def test_clusters_are_found_and_counted() -> None:
    rng = np.random.default_rng(1)
    centres = np.array([[0.0, 0], [9, 0], [0, 9]])
    where = rng.integers(3, size=90)
    points = centres[where] + rng.normal(size=(90, 2)) * 0.3
    found = fit_clusters(points, k=3)
    assert len({(a, b) for a, b in zip(where.tolist(), found.predict(points).tolist(), strict=True)}) == 3
    assert found.predict(np.array([[8.0, 1.0]])) == found.predict(centres[1:2])


def test_more_clusters_than_sequences_are_refused() -> None:
    with pytest.raises(PairmiError, match="15 clusters need at least 15 reference sequences, got 3"):
        fit_clusters(np.zeros((3, 2)))


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sklearn.cluster", None)
    with pytest.raises(PairmiError, match=r"^clusters: sklearn is missing; pip install 'pairmi\[protein\]'"):
        fit_clusters(np.zeros((30, 2)))


def test_the_interval_covers_what_other_samples_give() -> None:
    rng = np.random.default_rng(2)
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    one = distance(rng.multinomial(400, p), rng.multinomial(400, q))
    others = jensen_shannon(rng.multinomial(400, p, 2000), rng.multinomial(400, q, 2000))
    low, high = np.quantile(others, (0.025, 0.975))
    assert one.low < one.value < one.high
    assert (one.high - one.low) == pytest.approx(high - low, rel=0.35)


def test_a_difference_is_clear_only_where_there_is_one() -> None:
    rng = np.random.default_rng(3)
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    reference, same, far = rng.multinomial(500, p), rng.multinomial(500, p), rng.multinomial(500, q)
    assert difference(far, same, reference).low > 0
    equal = difference(same, rng.multinomial(500, p), reference)
    assert equal.low < 0 < equal.high
    assert difference(same, far, reference).value == pytest.approx(-difference(far, same, reference).value)


def test_the_floor_is_what_chance_makes() -> None:
    """Two samples of n over k equal clusters come to about (k - 1) / (4 n)."""
    rng = np.random.default_rng(4)
    values = [noise_floor(rng.integers(15, size=5000), rng.multinomial(500, np.ones(15) / 15), 500, 200, n).value for n in range(20)]
    assert np.mean(values) == pytest.approx(14 / (4 * 500), rel=0.15)
    with pytest.raises(PairmiError, match="500 natural sequences beside the reference are needed, got 3"):
        noise_floor(np.zeros(3, dtype=int), np.ones(15, dtype=int), 500)
