"""Which residues ProteinMPNN couples, and whether they touch: exact mutual information of the empty sequence. Results go to docs/maps.md.

    python experiments/proteinmpnn_contacts.py [--folder ../shared/data/protein/pdb] [--floor 0.01]

Every structure's matrix is kept in --records: an interrupted run goes on where it stopped.
"""

import argparse
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

import pairmi
from pages.maps import write_section
from pairmi.backbones.identity import identify
from pairmi.backbones.proteinmpnn_features import distances, nearest
from pairmi.bench import report
from pairmi.bench.contacts import SEPARATIONS, contact_records, summary
from pairmi.bench.ledger import Ledger
from pairmi.bench.stats import mean_interval
from pairmi.info import apc
from pairmi.loading import load
from pairmi.provenance import provenance
from pairmi.tasks.protein.contacts import chance, precision
from pairmi.tasks.protein.scaffold import Scaffold, Structure, read_scaffold

Record = dict[str, Any]
NEIGHBOURS = 48  # of the model
AIM = 0.8  # precision at L, set before it was measured
METHOD = "mutual information"
AMONG = f"chance among its {NEIGHBOURS} nearest"
BINS = np.array([4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 25, 30, 40])  # Angstrom


def probed(file: Path, floor: float, records: Ledger) -> Record:
    """The matrix of the empty sequence of a structure; what it cost."""
    model = load("proteinmpnn", structure=file)
    settings = {"structure": file.stem, "weights": identify(model), "form": "joint", "floor": floor}

    def measure() -> Record:
        start = time.perf_counter()
        found = pairmi.mutual_information(model, torch.full((model.length,), model.vocab.size), floor=floor)
        seconds = time.perf_counter() - start
        upper = [round(value, 6) for value in found.matrix[*np.triu_indices(model.length, 1)].tolist()]
        doubts = {"asymmetry": found.asymmetry, "inconsistency": found.inconsistency, "bound": float(found.bound.max())}
        return {"upper": upper, "rows": found.rows, "seconds": seconds, "entropy": float(found.entropies.sum())} | doubts

    return records.measured(settings, measure)


def square(record: Record, length: int) -> np.ndarray:
    matrix = np.zeros((length, length))
    matrix[np.triu_indices(length, 1)] = record["upper"]
    return matrix + matrix.T


def scores_of(scaffold: Scaffold, matrix: np.ndarray) -> dict[str, np.ndarray]:
    """Of every pair by each method; the distances rank by themselves what the model was shown, and what a contact is."""
    alpha = torch.from_numpy(scaffold.atoms[:, 1])
    beta = torch.from_numpy(scaffold.places)
    apart = {name: -distances(x[:, None], x[None]).numpy() for name, x in (("C-alpha", alpha), ("C-beta", beta))}
    return {
        METHOD: matrix,
        f"{METHOD}, APC": apc(torch.from_numpy(matrix)).numpy(),
        "distance of C-alpha (what the model is shown)": apart["C-alpha"],
        "distance of C-beta (what a contact is: the ceiling)": apart["C-beta"],
    }


def linked_pairs(scaffold: Scaffold) -> np.ndarray:
    """The pairs of which one is among the nearest of the other: only these exchange messages."""
    near = nearest(torch.from_numpy(scaffold.atoms[:, 1]), NEIGHBOURS).numpy()
    linked = np.zeros((len(near), len(near)), dtype=bool)
    linked[np.arange(len(near))[:, None], near] = True
    return linked | linked.T


def among_neighbours(scaffold: Scaffold) -> list[Record]:
    """The share of contacts among the pairs that exchange messages: chance for who knows the model's graph and nothing else."""
    linked, found = linked_pairs(scaffold), []
    for separation in SEPARATIONS:
        i, j = np.triu_indices(len(linked), separation)
        share = float(scaffold.contacts[i, j][linked[i, j]].mean()) if linked[i, j].any() else 0.0
        about = {"protein": scaffold.name, "length": len(linked), "separation": separation, "precision": share, "rows": 0}
        found += [about | {"top": top, "method": AMONG} for top in ("L", "L/2")]
    return found


def draw(scaffolds: list[Scaffold], matrices: list[np.ndarray], file: Path) -> str:
    """The map of the protein in the middle, the precision of each, and MI over distance; returns the name of the one that is drawn."""
    plt = report.pyplot()
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(17, 5.6), layout="constrained", width_ratios=(1.15, 1, 1))
    found = [precision(m, s.contacts, SEPARATIONS[0], len(m)) for s, m in zip(scaffolds, matrices, strict=True)]
    typical = int(np.argsort(found)[len(found) // 2])
    _draw_map(left, figure, scaffolds[typical], matrices[typical])
    order = np.argsort(found)
    for marker, color, separation in (("o", "#0072B2", SEPARATIONS[0]), ("s", "#E69F00", SEPARATIONS[1])):
        values = [precision(matrices[n], scaffolds[n].contacts, separation, len(matrices[n])) for n in order]
        lucky = [chance(scaffolds[n].contacts, separation) for n in order]
        middle.plot(values, range(len(order)), marker, color=color, ms=6, label=f"MI, {separation} or more apart")
        middle.plot(lucky, range(len(order)), marker, color=color, ms=5, mfc="none", label=f"chance, {separation} or more apart")
    middle.set_yticks(range(len(order)), [f"{scaffolds[n].name} ({len(matrices[n])})" for n in order], fontsize=8)
    middle.set(xlim=(0, 1.02), xlabel="precision at L", title="each structure (residues)")
    middle.grid(alpha=0.25)
    middle.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.11), ncols=2, frameon=False)
    _draw_fall(right, scaffolds, matrices)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130)
    plt.close(figure)
    return scaffolds[typical].name


def _draw_map(axis: Any, figure: Any, scaffold: Scaffold, matrix: np.ndarray) -> None:
    length = len(matrix)
    shown = np.where(np.triu(np.ones((length, length)), SEPARATIONS[0]) > 0, matrix, np.nan)
    image = axis.imshow(np.sqrt(shown), cmap="Blues", vmin=0, vmax=float(np.sqrt(np.nanquantile(shown, 0.998))))
    i, j = np.triu_indices(length, SEPARATIONS[0])
    best = np.argsort(-matrix[i, j], kind="stable")[:length]
    right = scaffold.contacts[i[best], j[best]]
    for good, color, label in ((True, "#009E73", "L strongest: contact"), (False, "#D55E00", "L strongest: no contact")):
        axis.scatter(j[best][right == good], i[best][right == good], s=10, color=color, label=label)
    touching = scaffold.contacts[i, j]
    axis.scatter(i[touching], j[touching], s=6, color="k", marker="s", label="contact")
    axis.set(title=f"{scaffold.name}: MI above, contacts below", xlabel="residue", ylabel="residue")
    axis.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.11), ncols=3, frameon=False)
    bar = figure.colorbar(image, ax=axis, shrink=0.75, label="nats (colour: square root)")
    bar.ax.yaxis.set_major_formatter(lambda root, _: f"{root**2:.3f}")


def _draw_fall(axis: Any, scaffolds: list[Scaffold], matrices: list[np.ndarray]) -> None:
    values, apart = [], []
    for scaffold, matrix in zip(scaffolds, matrices, strict=True):
        i, j = np.triu_indices(len(matrix), SEPARATIONS[0])
        values.append(matrix[i, j])
        apart.append(np.linalg.norm(scaffold.places[i] - scaffold.places[j], axis=-1))
    mi, away = np.concatenate(values), np.concatenate(apart)
    centres, quantiles = [], []
    for low, high in pairwise(BINS):
        inside = mi[(away >= low) & (away < high)]
        if len(inside) >= 20 and np.median(inside) > 1e-6:  # beyond the nearest it is 0
            centres.append((low + high) / 2)
            quantiles.append(np.quantile(inside, (0.1, 0.5, 0.9)).clip(1e-6))
    if centres:
        lows, medians, highs = np.array(quantiles).T
        axis.fill_between(centres, lows, highs, color="#0072B2", alpha=0.2, label="10 % to 90 % of the pairs")
        axis.plot(centres, medians, "o-", color="#0072B2", ms=4, label="median")
    axis.axvline(8, color="k", lw=0.8, ls=":", label="contact: closer than 8 Å")
    axis.set(
        yscale="log",
        xlim=(4, None),
        ylim=(1e-5, None),
        xlabel="distance of C-beta (Å)",
        ylabel="MI (nats)",
        title=f"all pairs {SEPARATIONS[0]} or more apart",
    )
    axis.grid(alpha=0.25)
    axis.legend(fontsize=8, loc="upper right", frameon=False)


def section(scaffolds: list[Scaffold], records: list[Record], lines: list[Record], drawn: str, floor: float) -> str:
    about = ", ".join(f"{key} {value}" for key, value in (records[0]["provenance"] | {"printed at": provenance()["commit"][:12]}).items())
    total = mean_interval(np.array([sum(record["upper"]) for record in records]))
    share = mean_interval(np.array([sum(record["upper"]) / record["entropy"] for record in records]))
    here = {line["method"]: line for line in lines if (line["top"], line["separation"]) == ("L", f">= {SEPARATIONS[0]}")}
    main, linked = here[METHOD], here[AMONG]
    columns = ("method", "proteins", "separation", "top", "precision", "low", "high", "rows")
    spent = [record["rows"] / record["seconds"] for record in records]
    doubts = {key: float(np.mean([record[key] for record in records])) for key in ("asymmetry", "inconsistency")}
    full = sum(1 + 20 * len(scaffold.text) for scaffold in scaffolds)
    outside = [float(np.max(square(r, len(s.text))[~linked_pairs(s)], initial=0.0)) for s, r in zip(scaffolds, records, strict=True)]
    reached = (
        "is reached"
        if main["precision"] >= AIM
        else "is missed by MI as it stands; [read as a share of what a pair could share](#which-reading-ranks-contacts-best) it ranks contacts better"
    )
    mean = np.mean([np.mean(record["upper"]) for record in records])
    each = [
        {"structure": s.name, "residues": len(s.text), "total MI (nats)": sum(r["upper"])}
        | {f"precision at L, >= {d}": precision(square(r, len(s.text)), s.contacts, d, len(s.text)) for d in SEPARATIONS}
        | {"rows": r["rows"]}
        for s, r in zip(scaffolds, records, strict=True)
    ]
    return f"""## Contacts: ProteinMPNN on {len(scaffolds)} structures

Printed by `python experiments/proteinmpnn_contacts.py` ({about}; weights {records[0]["settings"]["weights"]}).

ProteinMPNN (Dauparas et al. 2022) predicts residues given a backbone. `pairmi.mutual_information` probes its empty sequence, every residue unknown (form `joint`, floor {floor} nats): which residues does the model couple, once the structure is known? Pairs are ranked by that number and compared with the contacts of
the same structure (C-beta closer than 8 Å). Precision is among the L or L/2 strongest pairs, means over {len(scaffolds)} proteins with 95 % bootstrap intervals over proteins; the chance level is the share of contacts among all pairs.

{report.table(lines, columns)}

![contacts](figures/proteinmpnn_contacts.png)

**What it means.** The model was *given* the structure: this is no prediction of contacts, and the map must not be read as the model having found the fold. Distance ranks contacts better, because a contact is a distance. What MI says is which residues the model couples once it has the structure: of the L
pairs {SEPARATIONS[0]} or more apart that it couples most, {100 * main["precision"]:.0f} % [{100 * main["low"]:.0f}, {100 * main["high"]:.0f}] touch. Our aim of {100 * AIM:.0f} % {reached}.

The fair chance level is that of the model's graph. In an empty sequence a residue can move only those that have it among their {NEIGHBOURS} nearest (C-alpha), so all other pairs share nothing by construction (the largest such entry, kept to 6 digits: {max(outside):.2g} nats). Of the pairs in the graph {100 * linked["precision"]:.0f} % touch, so the graph alone does not explain the ranking.
Within the graph, MI falls with distance (right). The ceiling is below 1 where a protein has fewer than L contacts that far apart. Drawn on the left: {drawn}, the middle one by precision.

Summed over pairs it is {total.value:.1f} nats a protein [{total.low:.1f}, {total.high:.1f}], {100 * share.value:.1f} % of the summed entropy of the residues. The directed matrix differs from its transpose by {doubts["asymmetry"]:.2g} nats a pair (mean MI {mean:.2g}), and the mixtures of conditionals
from the marginals by {doubts["inconsistency"]:.2g}: the model is no exact joint distribution, so its weak pairs are not to be trusted.

Cost: {min(r["rows"] for r in records)} to {max(r["rows"] for r in records)} rows a structure, {min(spent):.0f} to {max(spent):.0f} rows a second on one core of a busy shared machine; the encoder runs once. The floor prunes next to nothing here: {sum(r["rows"] for r in records)} of {full} rows.

<details><summary>Each structure</summary>

{report.table(each, tuple(each[0]))}

</details>
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parents[1] / "../shared/data/protein/pdb", help="PDB files")
    parser.add_argument("--floor", type=float, default=0.01, help="what pruning may change, in nats")
    parser.add_argument("--records", type=Path, default=Path("runs/proteinmpnn/contacts.jsonl"))
    parser.add_argument("--out", type=Path, default=Path("docs/maps.md"))
    options = parser.parse_args()
    ledger, files = Ledger(options.records), sorted(options.folder.glob("*.pdb"))
    if not files:
        raise SystemExit(f"no PDB files in {options.folder}")
    records, scaffolds, measured = [], [], []
    for number, file in enumerate(files, 1):
        records.append(probed(file, options.floor, ledger))
        scaffolds.append(read_scaffold(file))
        scores = scores_of(scaffolds[-1], square(records[-1], len(scaffolds[-1].text)))
        rows = {method: records[-1]["rows"] if METHOD in method else 0 for method in scores}
        measured += contact_records(Structure(file.stem, scaffolds[-1].text, scaffolds[-1].places), scores, rows)
        measured += among_neighbours(scaffolds[-1])
        print(f"{number}/{len(files)} {file.stem}: {records[-1]['rows']} rows in {records[-1]['seconds']:.0f} s", flush=True)
    matrices = [square(record, len(scaffold.text)) for record, scaffold in zip(records, scaffolds, strict=True)]
    drawn = draw(scaffolds, matrices, options.out.parent / "figures" / "proteinmpnn_contacts.png")
    lines = sorted(summary(measured), key=lambda line: (int(line["separation"][3:]), line["top"]))
    text = section(scaffolds, records, lines, drawn, options.floor)
    write_section(options.out, "proteinmpnn_contacts.py", text)
    print(text)


if __name__ == "__main__":
    main()
