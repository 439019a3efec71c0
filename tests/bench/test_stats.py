import pytest
from scipy.stats import binomtest

from pairmi.bench.stats import wilson


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (3, 10), (10, 10), (617, 1000), (1, 1)])
def test_wilson_is_the_textbook_interval(successes: int, trials: int) -> None:
    expected = binomtest(successes, trials).proportion_ci(method="wilson")
    assert wilson(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_wilson_of_nothing_says_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
