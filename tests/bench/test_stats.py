import math

import numpy as np
import pytest
from scipy.stats import binomtest

from pairmi.bench.stats import Interval, Swept, area, chi_square, cost_at, cost_ratio, paired_difference, wilson


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (3, 10), (10, 10), (617, 1000), (1, 1)])
def test_wilson_is_the_textbook_interval(successes: int, trials: int) -> None:
    expected = binomtest(successes, trials).proportion_ci(method="wilson")
    assert wilson(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_wilson_of_nothing_says_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


def test_a_paired_difference_is_sharper_than_two_intervals() -> None:
    rng = np.random.default_rng(0)
    theirs = (rng.random(400) < 0.8).astype(float)
    ours = theirs.copy()
    ours[:6] = 1 - ours[:6]  # only six boards tell them apart
    found = paired_difference(ours, theirs)
    assert found.value == pytest.approx(float((ours - theirs).mean()))
    assert found.low <= found.value <= found.high
    assert found.high - found.low < 0.03
    assert paired_difference(theirs, theirs) == Interval(0.0, 0.0, 0.0)
    assert str(Interval(1.0, 0.5, 2.0)) == "1 [0.5, 2]"


def test_paired_intervals_hold_what_they_promise() -> None:
    """In 200 experiments with a true difference of 0.05 about 95 % of the intervals hold it."""
    rng, held = np.random.default_rng(1), 0
    for n in range(200):
        ours, theirs = (rng.random((2, 300)) < [[0.75], [0.70]]).astype(float)
        found = paired_difference(ours, theirs, draws=500, seed=n)
        held += found.low <= 0.05 <= found.high
    assert 178 <= held <= 199


def test_the_cost_of_a_quality_is_read_off_the_frontier() -> None:
    assert cost_at([0.9, 0.5], [16.0, 4.0], 0.7) == pytest.approx(8.0)  # halfway on the logarithm
    assert cost_at([0.5, 0.9], [4.0, 16.0], 0.4) == 4.0
    assert cost_at([0.5, 0.9, 0.3], [4.0, 16.0, 8.0], 0.9) == pytest.approx(16.0)  # a dominated setting changes nothing
    assert cost_at([0.5], [4.0], 0.6) == math.inf


def test_half_the_passes_for_the_same_boards() -> None:
    rng = np.random.default_rng(2)
    quality = (rng.random((3, 200)) < np.array([[0.5], [0.8], [0.95]])).astype(float)
    cost = np.broadcast_to(np.array([[4.0], [8.0], [16.0]]), (3, 200))
    found = cost_ratio(Swept(quality, cost / 2), Swept(quality, cost), quality[1], 0.01, draws=100)
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))
    hopeless = Swept(np.zeros((1, 200)), cost[:1])
    assert cost_ratio(Swept(quality, cost), hopeless, quality[1], 0.01, draws=20).value == 0.0
    assert cost_ratio(hopeless, Swept(quality, cost), quality[1], 0.01, draws=20).value == math.inf
    assert math.isnan(cost_ratio(hopeless, hopeless, quality[1], 0.01, draws=20).value)


def test_the_area_is_the_mean_quality_over_log_cost() -> None:
    assert area([0.5, 1.0], [1.0, 4.0], 1.0, 16.0) == pytest.approx(0.75)
    assert area([0.5, 1.0, 0.2], [1.0, 4.0, 8.0], 1.0, 16.0) == pytest.approx(0.75)
    assert area([1.0], [4.0], 1.0, 16.0) == pytest.approx(0.5)


def test_chi_square_names_the_worst_table() -> None:
    found = chi_square({"fair": ([10.0, 10.0, 10.0], [10.0, 10.0, 10.0]), "loaded": ([30.0, 0.0, 0.0], [10.0, 10.0, 10.0])})
    assert found[0] == "loaded"
    assert found[1] < 1e-10
