"""How well a head knows the Sudoku model's mutual information, what it costs, and what MI shows of the rules. Results go to docs/head.md.

    python experiments/sudoku_head.py --labels DIR [--head FILE ...] [--former FILE]

DIR is what `pairmi labels --only test` filled for the embedded model: states of grids that no head was trained on, probed whole. The heads
beside the embedded one are those to compare it with; --former is one that other weights of this shape had, taken as it is.
"""

import argparse
from pathlib import Path
from typing import Any

import torch

from pairmi import api
from pairmi.backbones.checkpoint import load_tensors
from pairmi.backbones.identity import identify
from pairmi.bench import head, head_cost, probing, report
from pairmi.loading import load, with_head
from pairmi.mi.probe import Probe
from pairmi.model import Model
from pairmi.provenance import provenance
from pairmi.store import Labels, read_store
from pairmi.tasks.sudoku.puzzles import TEST, unique_puzzles
from pairmi.tasks.sudoku.rules import cell_name, peers, units
from studies.equivariance import equivariance
from studies.former import taken_over
from studies.relations import by_relation


def relations() -> dict[str, torch.Tensor]:
    """Every relation that two cells can have."""
    rows, columns, boxes = (torch.zeros(81, 81) for _ in range(3))
    for kind, lines in zip((rows, columns, boxes), units().split(9), strict=True):
        for line in lines:
            kind[line[:, None], line] = 1
        kind.fill_diagonal_(0)
    return {"same row": rows, "same column": columns, "same box": boxes, "none": 1 - peers().float() - torch.eye(81)}


def locked_pair(model: Model, count: int = 60) -> tuple[torch.Tensor, int, int, int, float]:
    """Over real puzzles, part solved by the model, the state in which a digit has two places left in a line or box and their MI is largest."""
    best: tuple[torch.Tensor, int, int, int, float] | None = None
    for canvas in unique_puzzles(count, TEST + 5).canvases:
        filled = api.decode(model, canvas, "threshold:threshold=0.999", greedy=True, steps=True)
        for step in filled.steps[2:4]:
            tokens = model.vocab.encode(step.text)
            if not 20 <= int((tokens == 9).sum()) <= 50:
                continue
            probs = model(tokens[None]).log_probs[0].exp()
            matrix = api.estimated(model, tokens[None])[0].matrix
            for unit in units():
                open_cells = unit[tokens[unit] == 9]
                for digit in range(9):
                    places = open_cells[probs[open_cells, digit] > 0.1]
                    if len(places) == 2 and float(probs[places, digit].sum()) > 0.95:
                        i, j = places.tolist()
                        if best is None or float(matrix[i, j]) > best[4]:
                            best = (tokens, i, j, digit, float(matrix[i, j]))
    assert best is not None
    found = api.mutual_information(model, [best[0]])[0]
    return (*best[:4], float(found.matrix[best[1], best[2]]))


def draw_pair(model: Model, tokens: torch.Tensor, i: int, j: int, digit: int, nats: float, file: Path) -> None:
    """The board with its candidate digits; the MI of one of the two cells with every other open cell as shade."""
    plt = report.pyplot()
    exact = api.mutual_information(model, [tokens])[0].matrix
    probs = model(tokens[None]).log_probs[0].exp()
    figure, axes = plt.subplots(1, 2, figsize=(12, 5.6), layout="constrained")
    entropy = -(probs * probs.clamp_min(1e-12).log()).sum(1)
    entropy[tokens < 9] = 0
    for axis, values, title in (
        (axes[0], entropy, "entropy of each open cell (nats)"),
        (axes[1], exact[i], f"MI with {cell_name(i)} (nats)"),
    ):
        image = axis.imshow(values.view(9, 9), cmap="cividis", vmin=0)
        figure.colorbar(image, ax=axis, shrink=0.8)
        axis.set(title=title, xticks=[], yticks=[])
        for line in range(10):
            axis.axhline(line - 0.5, color="white", lw=2 if line % 3 == 0 else 0.4)
            axis.axvline(line - 0.5, color="white", lw=2 if line % 3 == 0 else 0.4)
        for cell in range(81):
            y, x = divmod(cell, 9)
            if tokens[cell] < 9:
                axis.text(x, y, str(int(tokens[cell]) + 1), ha="center", va="center", color="white", fontsize=13)
            else:
                likely = [str(v + 1) for v in range(9) if probs[cell, v] > 0.05]
                shade = "black" if values[cell] > 0.4 * values.max() else "#ffc8a0"
                axis.text(x, y, " ".join(likely), ha="center", va="center", color=shade, fontsize=8)
        for cell in (i, j):
            y, x = divmod(cell, 9)
            axis.add_patch(plt.Rectangle((x - 0.47, y - 0.47), 0.94, 0.94, fill=False, ec="#D55E00", lw=2.5))
    figure.suptitle(f"{digit + 1} must stand in {cell_name(i)} or {cell_name(j)}: {nats:.2f} nats between them (probed)")
    figure.savefig(file, dpi=150)
    plt.close(figure)


def quantiles(values: torch.Tensor) -> dict[str, float]:
    return {f"{100 * q:g} %": float(values.double().quantile(q)) for q in (0.1, 0.5, 0.9, 0.99)} | {"mean": float(values.double().mean())}


def group_table(records: list[dict[str, Any]], names: list[str]) -> str:
    """R^2 and error of the heads in every group."""
    rows = []
    for group in dict.fromkeys(record["group"] for record in records):
        row = {"group": group}
        for record in records:
            if record["group"] == group and record["estimate"] in names:
                row |= {
                    "states": record["states"],
                    "mean MI": record["mean"],
                    f"{record['estimate']}: R2": record["r2"],
                    f"{record['estimate']}: error": record["mae"],
                }
        rows.append(row)
    return report.table(rows, tuple(dict.fromkeys(key for row in rows for key in row)))


def training_table(heads: list[str]) -> str:
    """What each head was trained on and for how long, from its own file."""
    rows = []
    for file in heads:
        about = load_tensors(Path(file))[1]
        training = {"steps": about["steps"], "batch": about["training"]["batch"], "seconds": round(about["seconds"])}
        probed = about["labels"]["positions"] or "all"
        states = {
            "labelled states": about["labels"]["count"],
            "probed positions": probed,
            "moved copies": about["training"]["augment"],
            "layers": about["layers"],
            "hops": about["config"].get("hops", 0),
            "begun with": about.get("start", "nothing"),
        }
        rows.append({"head": Path(file).stem} | states | training)
    return report.table(rows, tuple(rows[0]))


def measure(model: Model, labels: Labels, settings: dict[str, Any], heads: list[str], figures: Path, states: int) -> str:
    test = labels.split("test")
    attentive = load("sudoku", attention=True)
    records = head.fidelity_records(attentive, test, settings, heads)
    names = [Path(file).stem for file in heads]
    readers = {Path(file).stem: with_head(model, file) for file in heads}
    costs = head_cost.cost_table({name: (reader, reader.head) for name, reader in readers.items() if reader.head}, test.tokens, 9)
    head.draw_calibration(head.calibration_curves(model, test, heads), figures / f"head_{model.name}.png")
    probe = Probe(settings["form"], settings["floor"])
    some = test.tokens[:: max(1, len(test) // states)][:states]
    confirmed, through = probing.confirmed(model, some, probe), probing.throughput(model, some[: states // 2], probe, rounds=3)
    symmetric = equivariance(model, some, probe, torch.Generator().manual_seed(0))
    tokens, i, j, digit, nats = locked_pair(readers[names[0]])
    draw_pair(readers[names[0]], tokens, i, j, digit, nats, figures / f"locked_pair_{model.name}.png")
    everything = [record for record in records if record["group"] == "all"]
    related = by_relation(
        test, relations(), 9, {name: head.predicted_by(reader.head, reader, test) for name, reader in readers.items() if reader.head}
    )
    consistency = [
        {"what": "abs(I_ij - I_ji), mean of a state"} | quantiles(labels.asymmetry),
        {"what": "KL of m from p, mean of a state"} | quantiles(labels.inconsistency),
    ]
    about = ", ".join(f"{key} {value}" for key, value in provenance().items())
    return f"""# The head of `{model.name}`, measured

Printed by `python experiments/sudoku_head.py` ({about}; model `{model.name}`, weights {identify(model)}). MI by pruned probing (form {settings["form"]}, floor
{settings["floor"]} nats); scores on {len(test)} states of grids that no head was trained on. R2 and errors are over pairs of open cells, in nats.

## Fidelity

All test states, heads and controls (the scale of a control is fitted):

{report.table(everything, head.COLUMNS)}

What they were trained on; where the rows differ, so may the scores for that reason alone. A head that is called former learnt from other weights of this shape, and is taken as it is:

{training_table(heads)}

What limits it is in [head-ablation.md](head-ablation.md), what a better one buys in [head-buys.md](head-buys.md).

By source and by masked fraction:

{group_table(records, names)}

![calibration](figures/head_{model.name}.png)

## Cost beside a pass of the backbone (batch 256, alternately measured)

{report.table(costs, head_cost.COLUMNS)}

A head looks at open cells only, a pass at all of them, and ours takes hops only up to so many open cells: the most expensive of these canvases is the most that it can cost. Floating-point operations are those of the first two canvases, times are those of all.

## Pruned probing

Rows a state against the full probe of its open cells (`full`) and against the paper's 1 + N|V| = 730, whose N is the length of the sequence (`paper`), the largest certificate, and how consistent the beliefs are:

{report.table(probing.rows_records(labels, settings), probing.ROWS)}

The full probe on {confirmed["states"]} of them confirms the certificates:

{report.table([confirmed], tuple(confirmed))}

Labelling beside plain passes at the same batch:

{report.table([through], tuple(through))}

Consistency of the beliefs, quantiles over states (nats):

{report.table(consistency, tuple(consistency[0]))}

How far the beliefs follow Sudoku's symmetries (MI of moved canvases against moved MI):

{report.table([symmetric], tuple(symmetric))}

## What MI shows of the rules

{report.table(related, tuple(related[0]))}

A pair may share a box and a row or column. What a head misses are the pairs that share nothing: they depend on each other only through the cells between them. The AUROC column above is that of "shares a row, column or box" from MI
alone. As in the paper's first figure, a board of a real puzzle in which a digit has two places left:

![a digit with two places](figures/locked_pair_{model.name}.png)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="sudoku", help="an embedded one")
    parser.add_argument("--labels", type=Path, required=True)
    parser.add_argument("--head", nargs="*", default=[], help="heads to compare with the embedded one")
    parser.add_argument("--former", type=Path, help="a head that other weights of this shape had")
    parser.add_argument("--states", type=int, default=48, help="to probe fully")
    parser.add_argument("--out", type=Path, default=Path("docs/head.md"))
    options = parser.parse_args()
    labels, settings = read_store(options.labels)
    embedded = f"src/pairmi/weights/{options.model}-head.safetensors"
    model = load(options.model)
    former = [str(taken_over(options.former, model, Path("runs/former")))] if options.former else []
    text = measure(model, labels, settings, [embedded, *options.head, *former], options.out.parent / "figures", options.states)
    options.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
