"""Intervals: of a proportion, of a mean, of paired differences."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from pairmi.optional import needed

PerBoard = Float[ndarray, " N"]


library = partial(needed, who="bench", install="'pairmi[bench]'")  # a module of scipy or scikit-learn, which only benchmarks need


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a proportion (Wilson 1927): sensible near 0 and 1 too; of nothing, everything."""
    if not trials:
        return 0.0, 1.0
    found = library("scipy.stats").binomtest(successes, trials).proportion_ci(method="wilson")
    return float(found.low), float(found.high)


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def resamples(count: int, draws: int, seed: int) -> Int[ndarray, "R N"]:
    """Which values each bootstrap sample holds."""
    return np.random.default_rng(seed).integers(count, size=(draws, count))


def mean_interval(values: PerBoard, draws: int = 10_000, seed: int = 0) -> Interval:
    """The mean (percentile bootstrap over the values)."""
    low, high = np.quantile(values[resamples(len(values), draws, seed)].mean(1), (0.025, 0.975))
    return Interval(float(values.mean()), float(low), float(high))


def paired_difference(ours: PerBoard, theirs: PerBoard, draws: int = 10_000, seed: int = 0) -> Interval:
    """The mean of ours - theirs on the same boards (paired bootstrap)."""
    return mean_interval(ours - theirs, draws, seed)
