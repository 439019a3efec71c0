"""What limits the head: labels, layers, capacity, loss, moved copies or the labels' own error, one change at a time. Results go to docs/head-ablation.md.

    python experiments/head_ablation.py --labels DIR --test DIR --start HEAD [--states 4096] [--steps 400] [--precision bfloat16]

DIR are what `pairmi labels` filled: one to learn from, one of test grids whose states were probed whole. Every variant has the same
steps; finished ones are kept in --runs, so that an interrupted run goes on where it stopped.
"""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn
from tqdm import tqdm

from pairmi.backbones.checkpoint import fingerprint, load_tensors
from pairmi.backbones.identity import identify
from pairmi.bench import fidelity, head, report
from pairmi.bench.ledger import Ledger
from pairmi.loading import load, with_head
from pairmi.mi.probe import Probe
from pairmi.model import Model
from pairmi.provenance import provenance
from pairmi.store import Labels, read_store, triangle
from pairmi.training.distill import SIZES, Distill, DistillConfig, export_head, make_head, started
from pairmi.training.loop import fit
from pairmi.training.optimizer import Rates
from studies.relations import by_relation


@dataclass(frozen=True)
class Variant:
    """A head and how it is trained."""

    name: str
    kind: str = "low-rank"
    states: float = 1.0  # as a multiple of --states
    layers: tuple[int, ...] = (12, 16)
    inner: int = 96
    forms: int = 16
    rank: int = 16
    mixer: int = 16
    places: int = 4
    hops: int = 3
    edges: int = 4
    reach: int = 0
    last_reach: int = 0
    loss: str = "mse"
    augment: int = 1
    rate: float = 4e-3
    started: bool = True  # from the weights in --start


COMPARED = 1500  # states that the head in the package has seen, and as many that it has not
BASE = Variant("as it is")
FRESH = replace(BASE, started=False)
VARIANTS = (
    BASE,
    replace(BASE, name="without hops", hops=0),
    replace(BASE, name="one hop", hops=1),
    replace(BASE, name="two hops", hops=2),
    replace(BASE, name="eight kinds of edges", edges=8),
    replace(BASE, name="reads four blocks (10, 12, 14, 16)", layers=(10, 12, 14, 16)),
    replace(BASE, name="an eighth of the labels", states=1 / 8),
    replace(BASE, name="five times the labels", states=5),
    replace(BASE, name="no moved copies", augment=0),
    replace(BASE, name="five times the labels, no moved copies", states=5, augment=0),
    replace(BASE, name="loss: balanced", loss="balanced"),
    replace(FRESH, name="from nothing"),
    replace(FRESH, name="from nothing, layer 16 alone", layers=(16,)),
    replace(FRESH, name="from nothing, the paper's pairwise MLP (layer 16, rate 0.001)", kind="pair-mlp", layers=(16,), rate=1e-3),
    replace(BASE, name="hops up to 64 open cells", reach=64),
)


@dataclass(frozen=True)
class Size:
    """What all variants have in common."""

    states: int
    steps: int
    precision: str
    start: str


def trained(variant: Variant, model: Model, labels: Labels, settings: dict[str, Any], size: Size, run: Path) -> Path:
    """The file of the trained head."""
    sizes = {name: getattr(variant, name) for name in SIZES}
    fresh = make_head(variant.kind, model, variant.layers, sizes, 0)
    if variant.started:
        started(fresh, Path(size.start), variant.layers)
    some = labels.pick(torch.arange(min(len(labels), round(variant.states * size.states))))
    rates = Rates(muon=5 * variant.rate, adam=variant.rate)
    config = DistillConfig(batch=64, loss=variant.loss, augment=variant.augment, rates=rates, precision=size.precision)
    job = Distill(model, fresh, variant.layers, some, settings, config)
    checkpoint = fit(job, run, steps=size.steps, warmup=50, decay=0.7, save_every=500, evaluate_every=500)
    export_head(checkpoint, run / "head.safetensors")
    return run / "head.safetensors"


def scored(file: Path, model: Model, test: Labels) -> dict[str, float]:
    """R^2 over the pairs of all test states, of each source, and of cells that share a row, column or box and that do not."""
    reader = with_head(model, str(file))
    assert reader.head is not None
    predicted, within = head.predicted_by(reader.head, reader, test), test.known(model.vocab.size)
    found = {
        name: fidelity.r2(predicted[some][within[some]], test.mi[some][within[some]])
        for name, some in head.groups(test).items()
        if not name.startswith("masked")
    }
    assert model.graph is not None
    relations = {"linked": model.graph, "others": 1 - model.graph.to(torch.float32)}
    records = by_relation(test, relations, model.vocab.size, {"": predicted})
    found |= {record["relation"]: record[": R2"] for record in records}
    return found | {"minutes": load_tensors(file)[1]["seconds"] / 60}


def seen_and_unseen(model: Model, labels: Labels, count: int) -> dict[str, float]:
    """R^2 of the head in the package on states that it learnt from and on such of other grids, labelled alike: what more labels could close."""
    assert model.head is not None
    found = {}
    for part in ("train", "validation"):
        some = labels.split(part)
        some = some.pick(torch.arange(min(count, len(some))))
        within = some.known(model.vocab.size)
        found[part] = fidelity.r2(head.predicted_by(model.head, model, some)[within], some.mi[within])
    return found


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


def page(
    model: Model, rows: list[dict[str, Any]], settings: dict[str, Any], size: Size, tested: int, error: dict[str, Any], gap: dict[str, Any]
) -> str:
    about = ", ".join(f"{key} {value}" for key, value in provenance().items())
    r2 = {row["variant"]: row for row in rows}
    begun = load_tensors(Path(size.start))[1]
    return f"""# What limits the head

Printed by `python experiments/head_ablation.py` ({about}; `{model.name}`, weights {identify(model)}). {size.states} labelled states ({settings["positions"] or "all"} positions of each probed) with a moved copy of each, {size.steps} steps of 64
states, beginning with a head without hops that had learnt from {begun["labels"]["count"]} states before, unless it says otherwise; one change at a time; `minutes` of training on this machine. R2 on {tested} fully probed states of grids
that no head has seen; also of pairs of cells that share a row, column or box (`linked`) and of all `others`.

{report.table(rows, tuple(rows[0]))}

* What a head without hops misses are the `others`, which depend on each other through the cells between them: hops raise them from {r2["without hops"]["others"]:.2f} to {r2["one hop"]["others"]:.2f} (one), {r2["two hops"]["others"]:.2f} (two) and {r2["as it is"]["others"]:.2f} (three).
* Four blocks instead of two, which the head in the package reads, give {r2["reads four blocks (10, 12, 14, 16)"]["all"]:.3f} instead of {r2["as it is"]["all"]:.3f}.
* From nothing {r2["from nothing"]["all"]:.3f}, from the weights named above {r2["as it is"]["all"]:.3f}: where the latter is less, these had learnt their own states by heart.
* Labels: an eighth, one and five times as many states give {r2["an eighth of the labels"]["all"]:.3f}, {r2["as it is"]["all"]:.3f} and {r2["five times the labels"]["all"]:.3f} in as many steps.
* Moved copies replace labels where there are few: without them {r2["no moved copies"]["all"]:.3f} instead of {r2["as it is"]["all"]:.3f}; from five times the labels {r2["five times the labels, no moved copies"]["all"]:.3f} instead of {r2["five times the labels"]["all"]:.3f}. A copy has the MI of the board that was moved, and the model's own beliefs follow the symmetries only so far ([head.md](head.md)).
* Hops up to 64 open cells only, which bounds what they cost, explain {r2["hops up to 64 open cells"]["all"]:.3f}.
* The head in the package itself, which learnt longer and from more, explains R2 {gap["train"]:.3f} of the labels of {gap["count"]} states that it learnt from, and {gap["validation"]:.3f} on as many of other grids.
* The labels' own error is no limit: on {error["states"]} of the test states probed without pruning, the pruned labels explain R2 {error["r2"]:.4f} of the full ones; no entry is off by more than {error["largest"]:.4f} nats.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="sudoku", help="whose mutual information the labels are")
    parser.add_argument("--labels", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--states", type=int, default=4096, help="to learn from, where a variant does not change it")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument(
        "--start", required=True, help="a head without hops, whose weights the variants begin with that do not begin from nothing"
    )
    parser.add_argument("--precision", default="float32", help="of the passes to learn from")
    parser.add_argument("--probed", type=int, default=24, help="states to probe without pruning")
    parser.add_argument("--only", type=int, nargs="+", default=range(len(VARIANTS)), metavar="N", help="variants by number; no page")
    parser.add_argument("--runs", type=Path, default=Path("runs/ablation"))
    parser.add_argument("--out", type=Path, default=Path("docs/head-ablation.md"))
    options = parser.parse_args()
    model, size = load(options.model), Size(options.states, options.steps, options.precision, options.start)
    learning = load(options.model, precision=options.precision)
    (labels, settings), (test, tested) = read_store(options.labels), read_store(options.test)
    rows = []
    for number in options.only:
        variant, run = VARIANTS[number], options.runs / f"{number:02d}"
        about = {
            "variant": repr(variant),
            "size": repr(size),
            "labels": settings,
            "states": len(labels),
            "test": tested,
            "tested": len(test),
        }
        record = Ledger(run / "score.jsonl").measured(
            about,
            lambda: scored(trained(variant, learning, labels, settings, size, run), model, test),  # noqa: B023 (called at once)
        )
        rows.append({"variant": variant.name} | {name: record[name] for name in record if name not in ("settings", "provenance")})
    if len(rows) < len(VARIANTS):
        return
    error = Ledger(options.runs / "labels.jsonl").measured(
        {"test": tested, "tested": len(test), "count": options.probed}, lambda: label_error(model, test, options.probed)
    )
    gap = {"count": COMPARED} | Ledger(options.runs / "gap.jsonl").measured(
        {"head": fingerprint(cast(nn.Module, model.head).state_dict()), "labels": settings, "states": len(labels), "count": COMPARED},
        lambda: seen_and_unseen(learning, labels, COMPARED),
    )
    text = page(model, rows, settings, size, len(test), error, gap)
    print(text)
    options.out.write_text(text)


if __name__ == "__main__":
    main()
