"""`pairmi bench protein`: generated proteins against a reference, rule by rule (the paper's Table 2)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from pairmi.bench import sequence_sets as sets
from pairmi.bench.generation import Made
from pairmi.bench.stats import Interval
from pairmi.decoding import batches
from pairmi.mi.heads import Layered
from pairmi.model import Model
from pairmi.types import Backbone

TABLE_2 = ("sequential", "top-k:k=4", "top-k:k=8", "top-k:k=12", "mi-guided:budget=2,penalty=1", "mi-guided:budget=4,penalty=1")
COLUMNS = ("rule", "passes", "jsd", "low", "high", "root", "more", "more_low", "more_high", "seconds", "rows", "probe_rows")
QUALITY = ("rule", "composition", "low_complexity", "distinct")


def lengths_like(reference: Sequence[int], count: int) -> list[int]:
    """`count` lengths with the distribution of the reference's: its quantiles, so that nothing is left to chance."""
    return [int(x) for x in np.quantile(reference, (np.arange(count) + 0.5) / count, method="inverted_cdf")]


def embed(backbone: Backbone, texts: Sequence[str], batch: int = 64) -> Float[np.ndarray, "N D"]:
    """The mean over positions of the hidden states of each sequence, nothing masked."""
    tokens, rows = [backbone.vocab.encode(text) for text in texts], dict[int, np.ndarray]()
    for places in batches(tokens, batch):
        means = backbone(torch.stack([tokens[place] for place in places])).hidden.double().mean(1).cpu().numpy()
        rows |= dict(zip(places, means, strict=True))
    return np.stack([rows[place] for place in range(len(texts))])


def embedder(model: Model) -> Model:
    """The model as it reports its last layer, whatever its head reads: the yardstick must not depend on the head."""
    backbone = model.backbone
    return replace(model, backbone=backbone.reporting([backbone.depth])) if isinstance(backbone, Layered) else model


@dataclass(frozen=True)
class Yardstick:
    """A reference: clusters fitted to it, how many of its sequences are in each, and what its own kind comes to."""

    backbone: Backbone  # whose hidden states are the embedding
    texts: Sequence[str]
    clusters: Any  # scikit-learn's KMeans
    counts: Int[np.ndarray, " K"]
    floor: Interval

    def count(self, texts: Sequence[str]) -> Int[np.ndarray, " K"]:
        """How many sequences are in each cluster."""
        return np.bincount(self.clusters.predict(embed(self.backbone, texts)), minlength=len(self.counts))

    def judge(self, spec: str, made: Made, baseline: Int[np.ndarray, " K"] | None) -> dict[str, Any]:
        """Divergence from the reference in nats with its interval and its root, and the excess over a baseline, if there is one."""
        counts = self.count(made.texts)
        found = sets.distance(counts, self.counts)
        costs = {"passes": made.passes, "rows": made.rows, "probe_rows": made.probe_rows, "seconds": made.seconds}
        far = {"jsd": found.value, "low": found.low, "high": found.high, "root": found.value**0.5}
        if baseline is None:
            return {"rule": spec, **costs, **far}
        more = sets.difference(counts, baseline, self.counts)
        return {"rule": spec, **costs, **far, "more": more.value, "more_low": more.low, "more_high": more.high}


def yardstick(backbone: Backbone, reference: Sequence[str], others: Float[np.ndarray, "N D"], k: int = 15) -> Yardstick:
    """Clusters of a reference; the embeddings of `others` of its kind say what chance alone makes.

    Of many others many random sets are compared with the reference; of as many as the reference has, all at once.
    """
    embeddings = embed(backbone, reference)
    clusters = sets.fit_clusters(embeddings, k)
    counts, places = np.bincount(clusters.labels_, minlength=k), clusters.predict(others)
    if len(others) > len(reference):
        floor = sets.noise_floor(places, counts, len(reference))
    else:
        floor = sets.distance(np.bincount(places, minlength=k), counts)
    return Yardstick(backbone, reference, clusters, counts, floor)


def quality(texts: Sequence[str], reference: Sequence[str]) -> dict[str, float]:
    """What else can be said of sequences: the divergence of their residues, and how many are repetitive, or copies of each other."""
    return {
        "composition": float(sets.jensen_shannon(sets.residue_counts(texts), sets.residue_counts(reference))),
        "low_complexity": float(np.mean([sets.low_complexity(text) for text in texts])),
        "distinct": len(set(texts)) / len(texts),
    }
