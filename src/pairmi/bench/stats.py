"""Intervals: of a proportion, of paired differences, of the passes that two rules need for equal quality."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

PerBoard = Float[ndarray, " N"]


def wilson(successes: int, trials: int, z: float = 1.959964) -> tuple[float, float]:
    """The 95 % interval of a proportion (Wilson 1927): sensible near 0 and 1 too."""
    if trials == 0:
        return 0.0, 1.0
    p = successes / trials
    centre = (p + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials)) / (1 + z * z / trials)
    return max(0.0, centre - half), min(1.0, centre + half)


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def resamples(count: int, draws: int, seed: int) -> Int[ndarray, "R N"]:
    """Which boards each bootstrap sample holds."""
    return np.random.default_rng(seed).integers(count, size=(draws, count))


def _interval(value: float, drawn: Float[ndarray, " R"]) -> Interval:
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Interval(value, float(low), float(high))


def paired_difference(ours: PerBoard, theirs: PerBoard, draws: int = 10_000, seed: int = 0) -> Interval:
    """The mean of ours - theirs on the same boards (paired bootstrap)."""
    difference = ours - theirs
    return _interval(float(difference.mean()), difference[resamples(len(difference), draws, seed)].mean(1))


def mean_interval(values: PerBoard, draws: int = 10_000, seed: int = 0) -> Interval:
    """The mean (bootstrap over the values)."""
    return _interval(float(values.mean()), values[resamples(len(values), draws, seed)].mean(1))


@dataclass(frozen=True)
class Swept:
    """One rule over its settings on the same boards: what each board came to and what it cost."""

    quality: Float[ndarray, "S N"]
    cost: Float[ndarray, "S N"]


def cost_at(quality: Sequence[float], cost: Sequence[float], wanted: float) -> float:
    """The cost at which a rule's frontier reaches a quality, the logarithm of the cost interpolated; infinite if it never does."""
    points = sorted(zip(cost, quality, strict=True))
    below: tuple[float, float] | None = None
    for price, level in points:
        if level >= wanted:
            if below is None or price <= below[0]:
                return price
            share = (wanted - below[1]) / (level - below[1])
            return math.exp(math.log(below[0]) + share * (math.log(price) - math.log(below[0])))
        if below is None or level > below[1]:
            below = (price, level)
    return math.inf


def cost_ratio(ours: Swept, theirs: Swept, wanted: PerBoard, slack: float, draws: int = 1000, seed: int = 0) -> Interval:
    """What we pay over what they pay at the quality of a reference, `wanted` per board, less `slack`; boards are drawn together."""

    def ratio(some: Int[ndarray, " N"]) -> float:
        level = float(wanted[some].mean()) - slack
        prices = [cost_at(list(r.quality[:, some].mean(1)), list(r.cost[:, some].mean(1)), level) for r in (ours, theirs)]
        if math.isinf(prices[1]):
            return math.nan if math.isinf(prices[0]) else 0.0
        return prices[0] / prices[1]

    drawn = np.array([ratio(some) for some in resamples(len(wanted), draws, seed)])
    return _interval(ratio(np.arange(len(wanted))), np.nan_to_num(drawn, nan=1.0, posinf=1e9))


def area(quality: Sequence[float], cost: Sequence[float], cheapest: float, most_expensive: float) -> float:
    """The mean over log cost, from the cheapest to the most expensive, of the best quality that can be had for it."""
    edges = [cheapest, *sorted(price for price in cost if cheapest < price < most_expensive), most_expensive]
    total = 0.0
    for start, end in pairwise(edges):
        total += max((q for q, c in zip(quality, cost, strict=True) if c <= start), default=0.0) * math.log(end / start)
    return total / math.log(most_expensive / cheapest)


def chi_square(counts: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> tuple[str, float]:
    """Of several tables of observed and expected counts the worst, and its p-value times their number (Bonferroni)."""
    from scipy.stats import chisquare  # in the extra `plot`: only reports need it

    values = {name: float(chisquare(observed, expected).pvalue) for name, (observed, expected) in counts.items()}
    worst = min(values, key=lambda name: values[name])
    return worst, min(1.0, values[worst] * len(values))
