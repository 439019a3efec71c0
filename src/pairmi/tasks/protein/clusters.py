"""How far a set of sequences is from a reference: the Jensen-Shannon divergence of their clusters, with what chance alone makes of it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from pairmi.types import PairmiError

Embeddings = Float[np.ndarray, "N D"]
Counts = Int[np.ndarray, "*#R K"]


@dataclass(frozen=True)
class Clusters:
    """Centres that were fitted to a reference."""

    centres: Float[np.ndarray, "K D"]

    def assign(self, embeddings: Embeddings) -> Int[np.ndarray, " N"]:
        """The nearest centre of each."""
        distance = (self.centres**2).sum(1) - 2 * embeddings @ self.centres.T  # and |x|^2, the same for all
        return np.asarray(distance.argmin(1))

    def count(self, embeddings: Embeddings) -> Int[np.ndarray, " K"]:
        """How many fall into each cluster."""
        return np.bincount(self.assign(embeddings), minlength=len(self.centres))


def fit_clusters(reference: Embeddings, k: int = 15, seed: int = 0) -> Clusters:
    """K-means on the reference, the best of ten starts."""
    try:
        from sklearn.cluster import KMeans
    except ImportError as error:
        raise PairmiError("clusters: scikit-learn is missing; pip install 'pairmi[protein]'") from error
    if len(reference) < k:
        raise PairmiError(f"clusters: {k} clusters need at least {k} reference sequences, got {len(reference)}")
    return Clusters(KMeans(k, n_init=10, random_state=seed).fit(reference).cluster_centers_.astype(float))


def jensen_shannon(p: Counts, q: Counts) -> Float[np.ndarray, "*#R"]:
    """JS(p, q) = (KL(p || m) + KL(q || m)) / 2, m = (p + q) / 2, in nats: 0 to ln 2.

    It is the divergence; scipy's function of this name returns its root.
    """
    a, b = p / p.sum(-1, keepdims=True), q / q.sum(-1, keepdims=True)
    middle = (a + b) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.where(x > 0, x * np.log(x / middle), 0).sum(-1) for x in (a, b)]
    return np.asarray(np.maximum((terms[0] + terms[1]) / 2, 0))


@dataclass(frozen=True)
class Distance:
    """A divergence with its 95 % interval."""

    value: float
    low: float
    high: float


def distance(sample: Int[np.ndarray, " K"], reference: Int[np.ndarray, " K"], draws: int = 2000, seed: int = 0) -> Distance:
    """The divergence of two sets of counts, with a bootstrap interval over the sequences of both.

    Drawing again from counts adds the noise of one more draw, which only raises a divergence; so the interval is the spread of the
    redrawn values about their own mean, put around the observed value.
    """
    value = float(jensen_shannon(sample, reference))
    spread = _redrawn(sample, reference, draws, np.random.default_rng(seed))
    low, high = np.quantile(spread - spread.mean(), (0.025, 0.975))
    return Distance(value, max(0.0, value + float(low)), value + float(high))


def difference(
    one: Int[np.ndarray, " K"], other: Int[np.ndarray, " K"], reference: Int[np.ndarray, " K"], draws: int = 2000, seed: int = 0
) -> Distance:
    """JS(one, reference) - JS(other, reference), with its interval: both against the same redrawn reference."""
    value = float(jensen_shannon(one, reference) - jensen_shannon(other, reference))
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(reference.sum(), reference / reference.sum(), draws)
    first, second = (jensen_shannon(rng.multinomial(x.sum(), x / x.sum(), draws), drawn) for x in (one, other))
    low, high = np.quantile(first - second - (first - second).mean(), (0.025, 0.975))
    return Distance(value, value + float(low), value + float(high))


def _redrawn(sample: Int[np.ndarray, " K"], reference: Int[np.ndarray, " K"], draws: int, rng: np.random.Generator) -> np.ndarray:
    first, second = (rng.multinomial(x.sum(), x / x.sum(), draws) for x in (sample, reference))
    return jensen_shannon(first, second)


def noise_floor(pool: Int[np.ndarray, " N"], reference: Int[np.ndarray, " K"], size: int, draws: int = 2000, seed: int = 0) -> Distance:
    """What `size` sequences of the reference's own kind come to: the mean over random subsets of the pool's clusters, and 95 % of them."""
    if len(pool) < size:
        raise PairmiError(f"noise floor: {size} natural sequences beside the reference are needed, got {len(pool)}")
    rng = np.random.default_rng(seed)
    counts = np.stack([np.bincount(rng.choice(pool, size, replace=False), minlength=len(reference)) for _ in range(draws)])
    values = jensen_shannon(counts, reference[None])
    low, high = np.quantile(values, (0.025, 0.975))
    return Distance(float(values.mean()), float(low), float(high))
