import numpy as np
import pytest
from scipy.stats import binomtest

from pairmi.bench.stats import Interval, library, mean_interval, paired_difference, wilson
from pairmi.types import PairmiError


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


def test_the_interval_of_a_mean_is_scipys() -> None:
    values = np.random.default_rng(3).random(80)
    ours, theirs = (
        mean_interval(values),
        library("scipy.stats").bootstrap((values,), np.mean, method="percentile", rng=1).confidence_interval,
    )
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=3e-3)


def test_a_missing_library_is_named_with_its_extra() -> None:
    with pytest.raises(PairmiError, match=r"^bench: nosuch is missing; pip install 'pairmi\[bench\]'$"):
        library("nosuch.stats")
