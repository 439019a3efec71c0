"""`pairmi bench protein`: generated proteins against a reference, rule by rule (the paper's Table 2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from pairmi.bench import report
from pairmi.bench.generation import Made, Maker
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.tasks.protein.clusters import Clusters, Distance, difference, distance, fit_clusters, jensen_shannon, noise_floor
from pairmi.tasks.protein.composition import distinct, low_complexity, residue_counts
from pairmi.tasks.protein.novelty import Nearest
from pairmi.tasks.protein.scores import embed
from pairmi.types import Backbone

TABLE_2 = ("sequential", "top-k:k=4", "top-k:k=8", "top-k:k=12", "mi-guided:budget=2,penalty=1", "mi-guided:budget=4,penalty=1")
BUDGETS = (2, 4, 8, 12, 16, 24, 32)  # nats: a residue of which nothing is known has almost 3
GRID: dict[str, Sequence[str]] = {
    "sequential": ("by=random",),
    "top-k": tuple(f"k={k},by={by}" for by in ("confidence", "random") for k in (2, 3, 5, 6, 8)),
    "eb": tuple(f"budget={budget}" for budget in BUDGETS),
    "threshold": tuple(f"threshold={t}" for t in (0.1, 0.15, 0.2, 0.3, 0.5)),
    "factor": tuple(f"factor={f}" for f in (1, 2, 4, 6, 8)),
    "klass": tuple(f"threshold={t},drift={d}" for t in (0.2, 0.5) for d in (0.01, 0.05)),
    "maskgit": tuple(f"steps={s},noise={n}" for n in (0, 1) for s in (6, 10, 15, 25)),
    "mi-guided": tuple(f"budget={budget},penalty={p}" for p in (1, 4) for budget in BUDGETS[2:]),
    "mi-bound": tuple(f"budget={b},order={o}" for o in ("entropy", "information") for b in (0.05, 0.1, 0.2, 0.5, 1, 2)),
    "independent-set": tuple(f"threshold={t}" for t in (0.005, 0.01, 0.02, 0.05)),
}
COLUMNS = ("rule", "passes", "jsd", "low", "high", "root", "more", "more_low", "more_high", "seconds", "rows", "probe_rows")
QUALITY = ("rule", "composition", "low_complexity", "distinct", "identity", "perplexity", "recovery")


def all_settings() -> list[str]:
    """The rows of Table 2, then the grid of every rule; a rule without a grid has its defaults."""
    grid = [f"{rule}:{options}" if options else rule for rule in CATALOGUE for options in GRID.get(rule, ("",))]
    return list(dict.fromkeys((*TABLE_2, *grid)))


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


def quality(maker: Maker, texts: Sequence[str], yard: Yardstick, nearest: Nearest | None, scored: int) -> dict[str, Any]:
    """What else can be said of sequences; pseudo-perplexity and the identity with training sequences of the first `scored` only."""
    some = texts[:scored]
    record = {
        "composition": float(jensen_shannon(residue_counts(texts), residue_counts(yard.texts))),
        "low_complexity": float(np.mean([low_complexity(text) for text in texts])),
        "distinct": distinct(texts),
        "perplexity": maker.perplexity(some),
    }
    if nearest is not None:
        record["identity"] = float(np.median([nearest.identity(text) for text in some]))
    return record


def chosen(records: Sequence[dict[str, Any]], passes: float) -> list[str]:
    """Of each rule the setting with the smallest divergence among those of at most so many passes; if none, its fastest."""
    best = []
    for family in dict.fromkeys(report.family(record["rule"]) for record in records):
        mine = [record for record in records if report.family(record["rule"]) == family]
        quick = [record for record in mine if record["passes"] <= passes]
        best.append(min(quick, key=lambda r: r["jsd"]) if quick else min(mine, key=lambda r: r["passes"]))
    return [record["rule"] for record in best]


def draw_protein(yard: Yardstick, sets: Mapping[str, Sequence[str]], records: Sequence[dict[str, Any]], file: Path) -> None:
    """Divergence against passes, and the embeddings of every set over those of the reference, in the plane of its main components.

    The first set is of the reference's own kind.
    """
    plt = report.pyplot()
    reference = embed(yard.backbone, yard.texts)
    middle, plane = reference.mean(0), np.linalg.svd(reference - reference.mean(0), full_matrices=False)[2][:2]
    columns = 4
    lines = -(-(len(sets) + 1) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(4 * columns, 3.5 * lines), squeeze=False, layout="constrained")
    _draw_costs(axes.flat[0], yard.floor, next(iter(sets)), records)
    flat: Float[np.ndarray, "N 2"] = (reference - middle) @ plane.T
    for axis, (name, texts) in zip(list(axes.flat)[1:], sets.items(), strict=False):
        mine = (embed(yard.backbone, texts) - middle) @ plane.T
        axis.scatter(*flat.T, s=5, color="tab:gray", alpha=0.4, label="reference")
        axis.scatter(*mine.T, s=5, color="#D55E00", alpha=0.5, label="generated")
        axis.set_title(name, fontsize=9)
        axis.set_xticks([])
        axis.set_yticks([])
    for axis in list(axes.flat)[len(sets) + 1 :]:
        axis.axis("off")
    figure.legend(*axes.flat[1].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)
    plt.close(figure)


def _draw_costs(axis: Any, floor: Distance, kind: str, records: Sequence[dict[str, Any]]) -> None:
    """Every setting, a colour a rule, and the band in which sequences of the reference's own kind lie."""
    for family in dict.fromkeys(report.family(record["rule"]) for record in records):
        mine = sorted((r for r in records if report.family(r["rule"]) == family), key=lambda r: r["passes"])
        color, marker = report.STYLES.get(family, ("tab:brown", "."))
        axis.plot([r["passes"] for r in mine], [r["jsd"] for r in mine], marker, color=color, ms=4, label=family, alpha=0.85)
    axis.axhspan(floor.low, floor.high, color="k", alpha=0.12, lw=0, label=f"{kind} (noise floor)")
    axis.set(xscale="log", xlabel="passes", ylabel="JSD (nats)")
    report.label_passes(axis)
    axis.tick_params(labelsize=7)
    axis.set_title("divergence from the reference", fontsize=9)
    axis.legend(fontsize=6, frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.2))  # below: no point is hidden
