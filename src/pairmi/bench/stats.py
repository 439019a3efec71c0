"""Intervals."""

import math
from collections.abc import Sequence

import numpy as np


def wilson(successes: int, trials: int, z: float = 1.959964) -> tuple[float, float]:
    """The 95 % interval of a proportion (Wilson 1927): sensible near 0 and 1 too."""
    if trials == 0:
        return 0.0, 1.0
    p = successes / trials
    centre = (p + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials)) / (1 + z * z / trials)
    return max(0.0, centre - half), min(1.0, centre + half)


def mean_interval(values: Sequence[float], draws: int = 2000, seed: int = 0) -> tuple[float, float, float]:
    """The mean with its 95 % bootstrap interval over the values."""
    array = np.asarray(values, dtype=float)
    means = array[np.random.default_rng(seed).integers(len(array), size=(draws, len(array)))].mean(1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(array.mean()), float(low), float(high)
