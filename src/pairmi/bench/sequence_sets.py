"""Sets of sequences: what they are made of, and how far they are from a reference, by the clusters that they fall into."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from pairmi.bench.stats import Interval
from pairmi.optional import needed
from pairmi.tasks.protein.residues import RESIDUES
from pairmi.types import PairmiError

Embeddings = Float[np.ndarray, "N D"]
Counts = Int[np.ndarray, "*#R K"]
WINDOW, TRIGGER = 12, 2.2  # residues and bits: what starts a low-complexity segment in SEG (Wootton & Federhen 1993)
PLACES = {residue: place for place, residue in enumerate(RESIDUES)}


def residue_counts(texts: Sequence[str]) -> Int[np.ndarray, " 20"]:
    """How often each residue occurs, in alphabetical order."""
    return np.bincount([PLACES[letter] for text in texts for letter in text], minlength=len(RESIDUES))


def low_complexity(text: str, window: int = WINDOW, trigger: float = TRIGGER) -> float:
    """The fraction of residues in some window whose composition has at most `trigger` bits of entropy."""
    if len(text) < window:
        return 0.0
    one_hot: Float[np.ndarray, "L 20"] = np.eye(len(RESIDUES))[[PLACES[letter] for letter in text]]
    sums = np.concatenate([np.zeros((1, len(RESIDUES))), one_hot.cumsum(0)])
    share = (sums[window:] - sums[:-window]) / window
    entropy = -(share * np.log2(np.where(share > 0, share, 1))).sum(1)
    low = np.zeros(len(text), dtype=bool)
    for start in np.flatnonzero(entropy <= trigger):
        low[start : start + window] = True
    return float(low.mean())


def fit_clusters(reference: Embeddings, k: int = 15, seed: int = 0) -> Any:
    """K-means on the reference, the best of ten starts, by scikit-learn: its `predict` tells the cluster of each embedding."""
    sklearn = needed("sklearn.cluster", "clusters", "'pairmi[protein]'")
    if len(reference) < k:
        raise PairmiError(f"clusters: {k} clusters need at least {k} reference sequences, got {len(reference)}")
    return sklearn.KMeans(k, n_init=10, random_state=seed).fit(reference)


def jensen_shannon(p: Counts, q: Counts) -> Float[np.ndarray, "*#R"]:
    """JS(p, q) = (KL(p || m) + KL(q || m)) / 2, m = (p + q) / 2, in nats: 0 to ln 2.

    It is the divergence; scipy's function of this name returns its root.
    """
    a, b = p / p.sum(-1, keepdims=True), q / q.sum(-1, keepdims=True)
    middle = (a + b) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.where(x > 0, x * np.log(x / middle), 0).sum(-1) for x in (a, b)]
    return np.asarray(np.maximum((terms[0] + terms[1]) / 2, 0))


def _redrawn(counts: Int[np.ndarray, " K"], draws: int, rng: np.random.Generator) -> Int[np.ndarray, "R K"]:
    return rng.multinomial(counts.sum(), counts / counts.sum(), draws)


def _spread(values: Float[np.ndarray, " R"]) -> tuple[float, float]:
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def distance(sample: Int[np.ndarray, " K"], reference: Int[np.ndarray, " K"], draws: int = 2000, seed: int = 0) -> Interval:
    """The divergence of two sets of counts, with a bootstrap interval over the sequences of both.

    Drawing again from counts adds the noise of one more draw, which only raises a divergence; so the interval is the spread of the
    redrawn values about their own mean, put around the observed value.
    """
    value, rng = float(jensen_shannon(sample, reference)), np.random.default_rng(seed)
    redrawn = jensen_shannon(*(_redrawn(counts, draws, rng) for counts in (sample, reference)))
    low, high = _spread(redrawn - redrawn.mean())
    return Interval(value, max(0.0, value + low), value + high)


def difference(
    one: Int[np.ndarray, " K"], other: Int[np.ndarray, " K"], reference: Int[np.ndarray, " K"], draws: int = 2000, seed: int = 0
) -> Interval:
    """JS(one, reference) - JS(other, reference), with its interval: both against the same redrawn reference."""
    value, rng = float(jensen_shannon(one, reference) - jensen_shannon(other, reference)), np.random.default_rng(seed)
    drawn = _redrawn(reference, draws, rng)
    first, second = (jensen_shannon(_redrawn(counts, draws, rng), drawn) for counts in (one, other))
    low, high = _spread(first - second - (first - second).mean())
    return Interval(value, value + low, value + high)


def noise_floor(pool: Int[np.ndarray, " N"], reference: Int[np.ndarray, " K"], size: int, draws: int = 2000, seed: int = 0) -> Interval:
    """What `size` sequences of the reference's own kind come to: the mean over random subsets of the pool's clusters, and 95 % of them."""
    if len(pool) < size:
        raise PairmiError(f"noise floor: {size} natural sequences beside the reference are needed, got {len(pool)}")
    rng = np.random.default_rng(seed)
    counts = np.stack([np.bincount(rng.choice(pool, size, replace=False), minlength=len(reference)) for _ in range(draws)])
    values = jensen_shannon(counts, reference[None])
    return Interval(float(values.mean()), *_spread(values))
