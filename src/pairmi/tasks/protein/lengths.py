"""Sequences of different lengths: taken together by length, and lengths like those of a reference."""

from collections.abc import Iterator, Sequence

import numpy as np


def same_length(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """The places of sequences of one length, at most `most` at a time; the shortest first."""
    order = sorted(range(len(lengths)), key=lambda place: lengths[place])
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or lengths[order[end]] != lengths[order[start]] or end - start == most:
            yield order[start:end]
            start = end


def lengths_like(reference: Sequence[int], count: int) -> list[int]:
    """`count` lengths with the distribution of the reference's: its quantiles, so that nothing is left to chance."""
    return [int(x) for x in np.quantile(reference, (np.arange(count) + 0.5) / count, method="inverted_cdf")]
