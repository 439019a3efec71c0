"""Intervals and upper bounds of means whose values are skewed: most sequences lose little, a few lose much."""

import math
from statistics import NormalDist

import numpy as np
from jaxtyping import Float
from numpy import ndarray

Values = Float[ndarray, " N"]
DRAWS = 1000
TINY = 1e-12  # nats: what rounding may make of nothing


def student(probability: float, freedom: int) -> float:
    """The quantile of Student's t by its expansion around the normal (Abramowitz & Stegun 26.7.5)."""
    z = NormalDist().inv_cdf(probability)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def mean_interval(values: Values, confidence: float = 0.95, unseen: float = 1.0) -> tuple[float, float]:
    """An interval of the mean of losses >= 0, in nats, that covers under heavy tails.

    Student's interval of log(mean), and at its upper end `unseen_loss` for what may not have happened yet, `unseen` times: for as many
    members, in the unit of the values; 0 where nothing can be lost. Student's, bootstrap-t and their like cover a rare large loss only
    once it was seen; see docs/price.md.
    """
    low, high = _log_mean(values, (1 - confidence) / 2)
    return low, high + _hidden(len(values), unseen)


def upper_bound(values: Values, confidence: float = 0.95, unseen: float = 1.0) -> float:
    """A one-sided upper confidence bound of the mean of losses >= 0, made as `mean_interval`."""
    return _log_mean(values, 1 - confidence)[1] + _hidden(len(values), unseen)


def unseen_loss(count: int) -> float:
    """log(n) / n: what an outcome of probability 1/n, which n sequences easily miss, can add to the mean.

    If the members before have taken values of probability p, then KL(conditional || marginal) <= log(1 / p), for the marginal is at least
    p times the conditional.
    """
    return math.log(count) / count if count > 1 else math.inf


def _hidden(count: int, unseen: float) -> float:
    """What may not have happened yet, of so many members."""
    return unseen * unseen_loss(count) if unseen else 0.0


def _log_mean(values: Values, tail: float) -> tuple[float, float]:
    """Student's interval of the logarithm of the mean, with so much probability beyond each end."""
    count, mean = len(values), float(values.mean())
    if count < 2 or mean <= TINY:
        return 0.0, max(0.0, mean)
    spread = student(1 - tail, count - 1) * float(values.std(ddof=1)) / math.sqrt(count) / mean
    return mean * math.exp(-spread), mean * math.exp(min(spread, 700.0))


def difference_interval(values: Values, confidence: float = 0.95, seed: int = 0, unseen: float = 0.0) -> tuple[float, float]:
    """The interval of the mean of paired differences, which may have any sign: bootstrap-t, not narrower than Student's.

    Wider at both ends by what may not have happened yet, see `mean_interval`.
    """
    count, mean = len(values), float(values.mean())
    if count < 2:
        return -math.inf, math.inf
    error, tail = float(values.std(ddof=1)) / math.sqrt(count), (1 - confidence) / 2
    hidden = _hidden(count, unseen)
    if error <= TINY:
        return mean - hidden, mean + hidden
    drawn = values[np.random.default_rng(seed).integers(count, size=(DRAWS, count))]
    errors = drawn.std(1, ddof=1) / math.sqrt(count)
    z = ((drawn.mean(1) - mean) / np.maximum(errors, TINY))[errors > TINY]
    t = student(1 - tail, count - 1)
    down, up = (float(np.quantile(z, p)) for p in (tail, 1 - tail))
    return mean - max(t, up) * error - hidden, mean + max(t, -down) * error + hidden


def bounded_upper(values: Values, low: float, high: float, confidence: float = 0.95) -> float:
    """A valid upper confidence bound of the mean of independent values in [low, high], whatever their distribution.

    For a mean of at least m the wealth of a gambler who stakes a fixed share on "below m" at each value does not grow in the mean, so that
    by Markov's inequality it exceeds 1 / (1 - confidence) with probability at most 1 - confidence; the wealth is averaged over a fixed
    grid of shares (a betting bound, Waudby-Smith & Ramdas 2023).
    """
    x = (np.asarray(values, dtype=float) - low) / (high - low)
    shares = np.geomspace(1e-3, 0.999, 64)

    def wealth(m: float) -> float:
        stakes = shares / max(1 - m, TINY)  # 1 + stake (m - x) stays >= 0 for x up to 1
        logs = np.log1p(stakes[:, None] * (m - x)).sum(1)
        return float(np.logaddexp.reduce(logs) - math.log(len(shares)))

    bottom, top = float(x.mean()), 1.0 - 1e-9
    if wealth(top) < -math.log(1 - confidence):
        return high
    for _ in range(60):
        middle = (bottom + top) / 2
        bottom, top = (bottom, middle) if wealth(middle) >= -math.log(1 - confidence) else (middle, top)
    return low + top * (high - low)
