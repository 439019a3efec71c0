"""`pairmi bench contacts`: how well mutual information finds the residues that touch."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from pairmi.backbones.identity import identify
from pairmi.bench import report
from pairmi.bench.ledger import Ledger
from pairmi.bench.stats import mean_interval
from pairmi.info import apc
from pairmi.mi.maps import Way
from pairmi.model import Model
from pairmi.tasks.protein.contacts import chance, precision
from pairmi.tasks.protein.scaffold import Structure
from pairmi.types import Backbone

Records = list[dict[str, Any]]
SEPARATIONS = (6, 24)
COLUMNS = ("method", "proteins", "separation", "top", "precision", "low", "high", "rows")
METHODS = ("mutual information", "mutual information, APC", "categorical Jacobian", "categorical Jacobian, APC")


def pair_scores(backbone: Backbone, text: str, way: Way) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """The scores of all pairs of a sequence by each method, and the rows that each method evaluates."""
    tokens = backbone.vocab.encode(text)
    (mi, probed), (jacobian, replaced) = (replace(way, by=by).measure(backbone, tokens) for by in ("mi", "jacobian"))
    scores = (matrix.cpu().numpy() for matrix in (mi, apc(mi), jacobian, apc(jacobian)))
    return dict(zip(METHODS, scores, strict=True)), dict(zip(METHODS, (probed, probed, replaced, replaced), strict=True))


def contact_records(structure: Structure, scores: dict[str, np.ndarray], rows: dict[str, int]) -> Iterator[dict[str, Any]]:
    """The precision of each method, and that of chance, among the L and the L/2 strongest pairs of one protein."""
    length, contacts = len(structure.text), structure.contacts
    for separation in SEPARATIONS:
        for top, count in (("L", length), ("L/2", length // 2)):
            about = {"protein": structure.name, "length": length, "separation": separation, "top": top}
            for method, matrix in scores.items():
                yield about | {"method": method, "precision": precision(matrix, contacts, separation, count), "rows": rows[method]}
            yield about | {"method": "chance", "precision": chance(contacts, separation), "rows": 0}


def measured(
    model: Model, structures: Sequence[Structure], way: Way, ledger: Ledger, precision: str | None, figure: Path | None
) -> Records:
    """The records of all structures; what the ledger holds is not measured again, but the first one where its map is to be drawn."""
    about = {"weights": identify(model), "blocks": way.blocks, "deals": way.deals, "precision": precision}
    records: Records = []
    for number, structure in enumerate(tqdm(structures, desc="contacts", unit="protein", file=sys.stderr)):
        settings = {"protein": structure.name} | about
        found, drawn = ledger.find(settings), figure if number == 0 else None
        if found is None or drawn:
            scores, rows = pair_scores(model, structure.text, way)
            if drawn:
                draw_contacts(structure, scores, drawn)
            found = found or ledger.add(settings, {"records": list(contact_records(structure, scores, rows))})
        records += found["records"]
    return records


def summary(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over proteins with their 95 % intervals."""
    keys = dict.fromkeys((r["separation"], r["top"], r["method"]) for r in records)
    lines = []
    for separation, top, method in keys:
        mine = [r for r in records if (r["separation"], r["top"], r["method"]) == (separation, top, method)]
        found = mean_interval(np.array([r["precision"] for r in mine]))
        about = {"method": method, "proteins": len(mine), "separation": f">= {separation}", "top": top}
        rows = float(np.mean([r["rows"] for r in mine]))
        lines.append(about | {"precision": found.value, "low": found.low, "high": found.high, "rows": rows})
    return lines


def draw_contacts(structure: Structure, scores: dict[str, np.ndarray], file: Path) -> None:
    """True contacts below the diagonal of each map; above it the scores of a method, and its L strongest pairs."""
    plt = report.pyplot()
    shown = ("mutual information, APC", "categorical Jacobian, APC")
    figure, axes = plt.subplots(1, len(shown), figsize=(6 * len(shown), 6.4), layout="constrained")
    length, contacts = len(structure.text), structure.contacts
    for axis, method in zip(axes, shown, strict=True):
        matrix = np.where(np.triu(np.ones((length, length)), SEPARATIONS[0]) > 0, scores[method], np.nan)
        ceiling = max(float(np.nanquantile(matrix, 0.995)), 1e-12)
        image = axis.imshow(matrix, cmap="Blues", vmin=0, vmax=ceiling)
        i, j = np.triu_indices(length, SEPARATIONS[0])
        best = np.argsort(-matrix[i, j], kind="stable")[:length]
        right = contacts[i[best], j[best]]
        for good, color, label in ((True, "#009E73", "L strongest: contact"), (False, "#D55E00", "L strongest: none")):
            axis.scatter(j[best][right == good], i[best][right == good], s=9, color=color, label=label)
        axis.scatter(i[contacts[i, j]], j[contacts[i, j]], s=5, color="k", marker="s", label="true contact")
        found, luck = precision(scores[method], contacts, SEPARATIONS[0], length), chance(contacts, SEPARATIONS[0])
        axis.set_title(f"{structure.name}: {method}\nprecision at L {found:.2f}, chance {luck:.2f}", fontsize=10)
        axis.set(xlabel="residue", ylabel="residue")
        figure.colorbar(image, ax=axis, shrink=0.7)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    report.save(figure, file)
