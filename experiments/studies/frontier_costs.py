"""What two rules pay for equal quality, and the area under each rule's frontier, over the records of `pairmi.bench.frontiers`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from pairmi.bench import report
from pairmi.bench.frontiers import Record, each
from pairmi.bench.stats import Interval, PerBoard, resamples


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
    low, high = np.quantile(np.nan_to_num(drawn, nan=1.0, posinf=1e9), (0.025, 0.975))
    return Interval(ratio(np.arange(len(wanted))), float(low), float(high))


def area(quality: Sequence[float], cost: Sequence[float], cheapest: float, most_expensive: float) -> float:
    """The mean over log cost, from the cheapest to the most expensive, of the best quality that can be had for it."""
    if cheapest == most_expensive:
        return max(quality)
    edges = [cheapest, *sorted(price for price in cost if cheapest < price < most_expensive), most_expensive]
    total = 0.0
    for start, end in pairwise(edges):
        total += max((q for q, c in zip(quality, cost, strict=True) if c <= start), default=0.0) * math.log(end / start)
    return total / math.log(most_expensive / cheapest)


def swept(records: Sequence[Record], what: str = "passes") -> Swept:
    """All settings of a rule, or of several, on the same boards."""
    return Swept(np.stack([each(r, "good") for r in records]), np.stack([each(r, what) for r in records]))


def compare(ours: Sequence[Record], theirs: Sequence[Record], reference: Record, slack: float = 1.0, what: str = "passes") -> Interval:
    """The passes (or rows) that we need over those that they need at the reference's quality less `slack` points."""
    return cost_ratio(swept(ours, what), swept(theirs, what), each(reference, "good"), slack / 100)


def areas(records: Sequence[Record]) -> list[dict[str, Any]]:
    """The area under each rule's frontier, quality over the logarithm of passes between the same ends, best first."""
    by_rule: dict[str, list[Record]] = {}
    for record in records:
        verified = " verified" if record["settings"]["sampling"]["verify"] else ""
        by_rule.setdefault(report.family(record["settings"]["rule"]) + verified, []).append(record)
    ends = min(r["passes"] for r in records), max(r["passes"] for r in records)
    found = [{"rule": n, "area": area([r["quality"] for r in own], [r["passes"] for r in own], *ends)} for n, own in by_rule.items()]
    return sorted(found, key=lambda row: -float(row["area"]))
