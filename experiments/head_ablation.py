"""What limits the head: labels, layers, capacity, loss, moved copies or the labels' own error, one change at a time. Results go to docs/head-ablation.md.

    python experiments/head_ablation.py --labels DIR --test DIR [--limit N] [--steps 800]

DIR are what `pairmi labels` filled: one to learn from, one of test grids whose states were probed whole. Every variant has the same
steps; finished ones are kept in --runs, so that an interrupted run goes on where it stopped.
"""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from pairmi.backbones.checkpoint import load_tensors
from pairmi.bench import fidelity, report
from pairmi.bench.head import groups, predicted_by
from pairmi.bench.ledger import Ledger
from pairmi.mi.probe import Probe
from pairmi.provenance import provenance
from pairmi.spec import Model, identify, load, with_head
from pairmi.store import Labels, read_store, triangle
from pairmi.training.distill import Distill, DistillConfig, export_head, make_head
from pairmi.training.loop import fit
from pairmi.training.optimizer import Rates


@dataclass(frozen=True)
class Variant:
    """A head and how it is trained."""

    name: str
    kind: str = "low-rank"
    states: float = 1.0  # share of the labelled states
    layers: tuple[int, ...] = (6, 8)
    inner: int = 96
    forms: int = 16
    rank: int = 16
    mixer: int = 16
    loss: str = "mse"
    augment: int = 0
    rate: float = 6e-3
    steps: float = 1.0  # share of the steps


BASE = Variant("as it is")
VARIANTS = (
    BASE,
    replace(BASE, name="an eighth of the labels", states=1 / 8),
    replace(BASE, name="half of the labels", states=1 / 2),
    replace(BASE, name="a moved copy of every state", augment=1),
    replace(BASE, name="half of the steps", steps=1 / 2),
    replace(BASE, name="three times the steps", steps=3),
    replace(BASE, name="layer 8 alone", layers=(8,)),
    replace(BASE, name="layers 5 to 8", layers=(5, 6, 7, 8)),
    replace(BASE, name="half the forms", forms=8),
    replace(BASE, name="twice the forms and widths", forms=32, inner=192, mixer=32),
    replace(BASE, name="loss: balanced", loss="balanced"),
    replace(BASE, name="loss: root", loss="root"),
    replace(
        BASE, name="the paper's pairwise MLP (layer 8, rate 0.001, half of the steps)", kind="pair-mlp", layers=(8,), rate=1e-3, steps=1 / 2
    ),
)


def trained(variant: Variant, model: Model, labels: Labels, settings: dict[str, Any], steps: int, run: Path) -> Path:
    """The file of the trained head."""
    sizes = {name: getattr(variant, name) for name in ("inner", "forms", "rank", "mixer")}
    head = make_head(variant.kind, model, variant.layers, sizes, 0)
    some = labels.pick(torch.arange(round(variant.states * len(labels))))
    config = DistillConfig(batch=64, loss=variant.loss, augment=variant.augment, rates=Rates(muon=5 * variant.rate, adam=variant.rate))
    job = Distill(model, head, variant.layers, some, settings, config)
    last = round(variant.steps * steps)
    checkpoint = fit(job, run, steps=last, warmup=50, decay=0.7, save_every=500, evaluate_every=500)
    export_head(checkpoint, run / "head.safetensors")
    return run / "head.safetensors"


def scored(file: Path, model: Model, test: Labels) -> dict[str, float]:
    """R^2 over the pairs of all test states, and of each source."""
    reader = with_head(model, str(file))
    assert reader.head is not None
    predicted, within = predicted_by(reader.head, reader, test), test.known(model.vocab.size)
    found = {
        name: fidelity.r2(predicted[some][within[some]], test.mi[some][within[some]])
        for name, some in groups(test).items()
        if not name.startswith("masked")
    }
    return found | {"minutes": load_tensors(file)[1]["seconds"] / 60}


def label_error(model: Model, test: Labels, count: int) -> dict[str, float]:
    """How well the pruned labels explain full probes of the same states: no head that learns from them can be expected above it."""
    some = test.pick(torch.arange(0, len(test), max(1, len(test) // count)))
    whole = torch.cat(
        [triangle(Probe(floor=0.0).measure(model(tokens[None]), model).matrix) for tokens in tqdm(some.tokens, desc="full probes")]
    )
    within = some.known(model.vocab.size)
    return {
        "states": len(some),
        "r2": fidelity.r2(some.mi[within], whole[within].float()),
        "largest": float((some.mi - whole)[within].abs().max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="sudoku-small", help="whose mutual information the labels are")
    parser.add_argument("--labels", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--limit", type=int, help="learn from about so many states only")
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--probed", type=int, default=24, help="states to probe without pruning")
    parser.add_argument("--only", type=int, nargs="+", default=range(len(VARIANTS)), metavar="N", help="variants by number; no page")
    parser.add_argument("--runs", type=Path, default=Path("runs/ablation"))
    parser.add_argument("--out", type=Path, default=Path("docs/head-ablation.md"))
    options = parser.parse_args()
    model = load(options.model)
    (labels, settings), (test, tested) = read_store(options.labels, options.limit), read_store(options.test)
    rows = []
    for number in options.only:
        variant, run = VARIANTS[number], options.runs / f"{number:02d}"
        about = {
            "variant": repr(variant),
            "steps": options.steps,
            "labels": settings,
            "states": len(labels),
            "test": tested,
            "tested": len(test),
        }
        record = Ledger(run / "score.jsonl").measured(
            about,
            lambda: scored(trained(variant, model, labels, settings, options.steps, run), model, test),  # noqa: B023 (called at once)
        )
        rows.append({"variant": variant.name} | {name: record[name] for name in record if name not in ("settings", "provenance")})
    if len(rows) < len(VARIANTS):
        return
    error = Ledger(options.runs / "labels.jsonl").measured(
        {"test": tested, "tested": len(test), "count": options.probed}, lambda: label_error(model, test, options.probed)
    )
    text = f"""# What limits the head

Printed by `python experiments/head_ablation.py` ({", ".join(f"{key} {value}" for key, value in provenance().items())}; `{model.name}`, weights {identify(model)}). {len(labels)} labelled states
({settings["positions"] or "all"} positions of each probed), {options.steps} steps of 64 states unless it says otherwise, one change at a time; `minutes` of training on this machine; R2 on {len(test)} fully probed states of grids that no head has seen.

{report.table(rows, tuple(rows[0]))}

Labels limit it: an eighth, half and all of these states explain {", ".join(f"{row['all']:.2f}" for row in (rows[1], rows[2], rows[0]))}, a moved copy of each {rows[3]["all"]:.2f}; more capacity, more steps and more layers explain no more, they learn the states by heart.

The labels' own error: on {error["states"]} of the test states probed without pruning, the pruned labels explain R2 {error["r2"]:.4f} of the full ones; no entry is off by more than {error["largest"]:.4f} nats.
"""
    print(text)
    options.out.write_text(text)


if __name__ == "__main__":
    main()
