"""The picture of a study of proteins."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from pairmi.bench import report
from pairmi.bench.protein import Yardstick, embed
from pairmi.bench.stats import Interval


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


def _draw_costs(axis: Any, floor: Interval, kind: str, records: Sequence[dict[str, Any]]) -> None:
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
