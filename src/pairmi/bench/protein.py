"""`pairmi bench protein`: generated proteins against a reference, rule by rule (the paper's Table 2)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from pairmi.bench.generation import Made, generate
from pairmi.bench.ledger import Ledger
from pairmi.mi.heads import Layered
from pairmi.model import Model
from pairmi.tasks.protein.clusters import Clusters, Distance, difference, distance, fit_clusters, jensen_shannon, noise_floor
from pairmi.tasks.protein.composition import distinct, low_complexity, residue_counts
from pairmi.tasks.protein.lengths import lengths_like
from pairmi.tasks.protein.scores import embed
from pairmi.types import Backbone, PairmiError

TABLE_2 = ("sequential", "top-k:k=4", "top-k:k=8", "top-k:k=12", "mi-guided:budget=2,penalty=1", "mi-guided:budget=4,penalty=1")
COLUMNS = ("rule", "passes", "jsd", "low", "high", "root", "more", "more_low", "more_high", "seconds", "rows", "probe_rows")
QUALITY = ("rule", "composition", "low_complexity", "distinct")


@dataclass(frozen=True)
class Reference:
    """What is generated, what it is compared with, and more of the same kind, for the noise floor."""

    lengths: Sequence[int]
    texts: Sequence[str]
    others: Sequence[str]
    kind: str  # what these are


def natural(texts: Sequence[str], count: int, source: str) -> Reference:
    """`count` sequences of a file; of what is left, up to four times as many say what chance makes."""
    if len(texts) < 2 * count:
        raise PairmiError(f"bench protein: {source} holds {len(texts)} sequences; the reference and its noise floor need {2 * count}")
    mixed = [texts[place] for place in np.random.default_rng(0).permutation(len(texts))]
    return Reference(lengths_like([len(text) for text in texts], count), mixed[:count], mixed[count : 5 * count], "natural")


def own(model: Model, ledger: Ledger, lengths: Sequence[int], batch: int = 64) -> Reference:
    """The model's own sequential samples as the reference: what a rule loses, not how good the model is."""
    texts, others = (generate(model, ledger, "sequential", lengths, seed, batch).texts for seed in (1000, 1001))
    return Reference(lengths, texts, others, "sequential, again")


def embedder(model: Model) -> Model:
    """The model as it reports its last layer, whatever its head reads: the yardstick must not depend on the head."""
    backbone = model.backbone
    return replace(model, backbone=backbone.reporting([backbone.depth])) if isinstance(backbone, Layered) else model


@dataclass(frozen=True)
class Yardstick:
    """A reference: clusters fitted to it, how many of its sequences are in each, and what its own kind comes to."""

    backbone: Backbone  # whose hidden states are the embedding
    texts: Sequence[str]
    clusters: Clusters
    counts: Int[np.ndarray, " K"]
    floor: Distance

    def count(self, texts: Sequence[str]) -> Int[np.ndarray, " K"]:
        """How many sequences are in each cluster."""
        return self.clusters.count(embed(self.backbone, texts))

    def judge(self, spec: str, made: Made, baseline: Int[np.ndarray, " K"] | None) -> dict[str, Any]:
        """Divergence from the reference in nats with its interval and its root, and the excess over a baseline, if there is one."""
        counts = self.count(made.texts)
        found = distance(counts, self.counts)
        costs = {"passes": made.passes, "rows": made.rows, "probe_rows": made.probe_rows, "seconds": made.seconds}
        far = {"jsd": found.value, "low": found.low, "high": found.high, "root": found.value**0.5}
        if baseline is None:
            return {"rule": spec, **costs, **far}
        more = difference(counts, baseline, self.counts)
        return {"rule": spec, **costs, **far, "more": more.value, "more_low": more.low, "more_high": more.high}


def yardstick(backbone: Backbone, reference: Sequence[str], others: Float[np.ndarray, "N D"], k: int = 15) -> Yardstick:
    """Clusters of a reference; the embeddings of `others` of its kind say what chance alone makes.

    Of many others many random sets are compared with the reference; of as many as the reference has, all at once.
    """
    embeddings = embed(backbone, reference)
    clusters = fit_clusters(embeddings, k)
    counts = clusters.count(embeddings)
    places = clusters.assign(others)
    if len(others) > len(reference):
        floor = noise_floor(places, counts, len(reference))
    else:
        floor = distance(np.bincount(places, minlength=k), counts)
    return Yardstick(backbone, reference, clusters, counts, floor)


def quality(texts: Sequence[str], reference: Sequence[str]) -> dict[str, float]:
    """What else can be said of sequences: the divergence of their residues, and how many are repetitive, or copies of each other."""
    return {
        "composition": float(jensen_shannon(residue_counts(texts), residue_counts(reference))),
        "low_complexity": float(np.mean([low_complexity(text) for text in texts])),
        "distinct": distinct(texts),
    }
