"""Heads from cheap labels over the number of rows, for docs/sampled.md and docs/text.md: how far more rows take them.

    python experiments/sampled_heads.py protein antiberty albert-zh [--store DIR] [--records FILE] [--shares S ...]
    python experiments/sampled_heads.py protein --labels 0x4 4x4 1x16 train --rows 8192

The second makes heads from labels of several kinds that cost equal rows: STORE/protein-0x4 and so on; `train` are those of the first.
Every head is a line of --records, and what is there is not made again. The labels must be in --store: those to learn from of training
families, and of other families such as are measured on, exact or from many draws. AntiBERTy's sequences are its own, one by one
(antibody_results.py) and, the first 120, by `mi-bound:budget=0.25`; its reference is that of the test there.

    pairmi labels --backbone protein --precision bfloat16 --data PROTEINS --only train --each 48 --draws 1 --positions 4 --shard 256 --states 9984 --out STORE/protein-train
    pairmi labels --backbone protein --precision bfloat16 --data PROTEINS --only test --seed 1 --each 6 --form kl --floor 0 --positions 4 --shard 128 --states 1536 --out STORE/protein-test
    pairmi labels --backbone antiberty --precision bfloat16 --data experiments/records/antiberty_samples.fasta --only train --each 24 --draws 1 --positions 4 --shard 64 --states 2176 --out STORE/antiberty-train
    pairmi labels --backbone antiberty --precision bfloat16 --data experiments/records/antiberty_reference.fasta --seed 20 --each 6 --floor 0.02 --positions 4 --shard 16 --states 112 --out STORE/antiberty-test
    pairmi labels --backbone antiberty --precision bfloat16 --data experiments/records/antiberty_reference.fasta --seed 1 --each 8 --draws 16 --positions 2 --shard 16 --states 144 --out STORE/antiberty-test-kl
    pairmi labels --backbone albert-zh --precision bfloat16 --data SENTENCES --only train --draws 1 --positions 4 --shard 64 --states 4800 --out STORE/albert-zh-train
    pairmi labels --backbone albert-zh --precision bfloat16 --data SENTENCES --only test --seed 1 --draws 256 --positions 3 --shard 64 --states 384 --out STORE/albert-zh-test

Labels of other kinds (--labels) are made in the same way with other --positions and --draws, or without draws (0x4): `--form kl --floor 0`, AntiBERTy's `--floor 0.02`.
SENTENCES are those of the treebank, `gzip -dc ud_chinese_gsdsimp_dev.txt.gz | tr -d ' '`. A head of these is `pairmi train head --backbone protein --precision bfloat16 --labels STORE/protein-train STORE/protein-validation --loss poisson ...`
with the sizes below; here the step to stop at is chosen on a third of the test families, which are not scored.
"""

import argparse
import copy
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from pairmi.backbones.checkpoint import save_tensors
from pairmi.bench import fidelity
from pairmi.bench.head import predicted_by
from pairmi.bench.head_cost import cost_records
from pairmi.bench.ledger import Ledger
from pairmi.draw import Streams
from pairmi.info import entropy_of
from pairmi.loading import head_file, load, with_head
from pairmi.mi.sampled import stratified
from pairmi.provenance import provenance
from pairmi.store import Labels, read_store, triangle
from pairmi.training.distill import Distill, DistillConfig, make_head, started
from pairmi.training.labels import SURE, Effort
from pairmi.training.length_buckets import LengthBuckets, typical_share
from pairmi.training.loop import learning_rate
from pairmi.training.optimizer import MuonAdamW, Rates
from pairmi.training.states import grid_name

Record = dict[str, Any]
EVERY, PATIENCE = 50, 8  # steps between two looks at the families to stop by, and looks without progress that end a training
BATCH, WARMUP, DECAY = 32, 50, 0.7
ROUNDS, ROWS = 3, 5  # over the states at least, where labels are many; and what a state of these costs
RECORDS = Path(__file__).parent / "records"


@dataclass(frozen=True)
class Heads:
    """What is made for one backbone: a head of this shape for shares of the rows, from nothing and for some from the shipped one."""

    layers: tuple[int, ...]
    sizes: Mapping[str, int]
    steps: int  # at most, or `ROUNDS` over the states
    onward: tuple[float, ...] = ()  # the shares for which a head goes on from the shipped one


SHARES = (1.0, 0.5, 0.25, 0.125)  # of the rows that the labels cost
FLAT = {"places": 4, "hops": 0, "edges": 4, "reach": 0, "last_reach": 0}
SETTINGS = {  # shapes of the shipped heads, where there are any
    "protein": Heads((4, 6), {"inner": 48, "forms": 8, "rank": 16, "mixer": 16} | FLAT, 800, (1.0,)),
    "antiberty": Heads((6, 8), {"inner": 24, "forms": 4, "rank": 8, "mixer": 8} | FLAT, 200, (1.0,)),
    "albert-zh": Heads((3, 4), {"inner": 32, "forms": 8, "rank": 8, "mixer": 16} | FLAT, 400),
}


def halves(test: Labels) -> tuple[Labels, Labels]:
    """Of the test families a third to stop by, the others to score on."""
    stop = torch.tensor([int(grid[8:], 16) % 3 == 0 for grid in test.grid])
    return test.pick(torch.nonzero(stop)[:, 0]), test.pick(torch.nonzero(~stop)[:, 0])


def within_rows(labels: Labels, rows: int) -> Labels:
    """The first states that cost so many rows together."""
    return labels.pick(torch.nonzero(labels.rows.cumsum(0) <= rows)[:, 0])


def scored(name: str, file: str, test: Labels) -> Record:
    """R2 and rank correlation of a head on the pairs that were measured."""
    guided = with_head(load(name, precision="bfloat16"), file)
    within = test.known(guided.vocab.size)
    predicted, truth = predicted_by(guided.head, guided, test)[within], test.mi[within]  # type: ignore[arg-type]
    return {
        "R2": fidelity.r2(predicted, truth),
        "Spearman": fidelity.spearman(predicted, truth),
        "test states": len(test),
        "pairs": len(truth),
        "mean MI": float(truth.mean()),
    }


def beyond(labels: Labels, symbols: int) -> Record:
    """How much of `kl` labels is above min(H_i, H_j), which no mutual information is and no head says; R2 of the labels cut there."""
    true, cut = [], []
    for _, some in labels.by_length():
        allowed = triangle(torch.minimum(some.entropies[:, :, None], some.entropies[:, None]))
        true.append(some.mi[some.known(symbols)])
        cut.append(torch.minimum(some.mi, allowed)[some.known(symbols)])
    whole, least = torch.cat(true).double(), torch.cat(cut).double()
    return {"share above": 1 - float(least.sum() / whole.sum()), "R2 of the rest": fidelity.r2(least, whole), "states": len(labels)}


def cut(buckets: LengthBuckets, settings: Mapping[str, Any]) -> None:
    """Cut labels of one draw at its surprise, KL(q_v || p_j) <= -log p_i(v): what holds wherever p_j = sum_v p_i(v) q_(j|v), in place."""
    effort, kept = Effort(settings["positions"]), []
    for backbone, known, mi in buckets.kept:
        sources = effort.sources(known, ~(known.masked & (entropy_of(known) > SURE)))
        assert sources is not None
        names = torch.tensor([int(grid_name(tokens), 16) >> 1 for tokens in known.tokens])
        canvas, position = torch.nonzero(sources).unbind(1)
        uniform = Streams(0, names).uniform("probe 0", known.tokens.shape[1], 1)[canvas, position]
        symbols = stratified(known.log_probs[canvas, position], uniform, each=1).symbols
        surprise = torch.zeros(sources.shape, dtype=torch.double)
        surprise[canvas, position] = -known.log_probs[canvas, position].double().gather(1, symbols)[:, 0]
        sides = sources[:, :, None].double() + sources[:, None]  # the label of a pair that was drawn from both is their mean
        most = triangle((surprise[:, :, None] + surprise[:, None]) / sides.clamp_min(1))
        kept.append((backbone, known, torch.minimum(mi, most.to(mi))))
    buckets.kept = kept


def best(job: Distill, steps: int) -> tuple[int, float]:
    """Train, and leave the head as it was where it explained most of the families to stop by; that step and R2."""
    kept, found, at = {}, -torch.inf, 0
    for step in range(steps):
        job.advance(step, learning_rate(step, steps, WARMUP, DECAY))
        if (step + 1) % EVERY == 0:
            r2 = job.evaluate()["r2"]
            if r2 > found:
                kept, found, at = {name: tensor.clone() for name, tensor in job.head.state_dict().items()}, r2, step + 1
            if step + 1 - at >= PATIENCE * EVERY:
                break
    job.head.load_state_dict(kept)
    return at, found


def about_to(job: Distill, name: str, labels: Labels, work: Mapping[str, Any]) -> Distill:
    """The same job with a head of its own, for the first of its labels: what the backbone says of them is known."""
    other, model, of = copy.copy(job), load(name, precision="bfloat16"), SETTINGS[name]
    head = make_head("low-rank", model, of.layers, work["sizes"], 0)
    other.start = started(head, head_file(name)) if work["start"] else ""
    if not other.start:
        head.begin_at(typical_share(labels))  # type: ignore[operator]
    rate = 1e-3 if other.start else 3e-3
    rates = Rates(muon=5 * rate, adam=rate)
    other.head, other.train, other.states, other.config = head, labels, len(labels), replace(job.config, loss=work["loss"], rates=rates)
    other.optimizer = MuonAdamW(dict(head.named_parameters()), dict.fromkeys(head.matrices, 1), rates)
    return other


def made(job: Distill, steps: int, file: Path) -> Record:
    """A head in `file`, with what its making took."""
    at, r2 = best(job, steps)
    save_tensors(file, job.head.state_dict(), {"kind": "head", "steps": at, "provenance": provenance(), **job.about()})
    return {"rows": int(job.train.rows.sum()), "states": len(job.train), "stopped at": at, "R2 to stop by": r2}


def works(name: str, rows: int, every: Sequence[float]) -> list[Record]:
    """Heads of a backbone for which labels cost so many rows: shares of them, and for some whether it goes on from the shipped."""
    of = SETTINGS[name]
    return [
        {
            "budget": budget,
            "steps": max(of.steps, ROUNDS * budget // ROWS // BATCH),
            "loss": "poisson",
            "start": start,
            "sizes": dict(of.sizes),
        }
        for start in (False, True)
        for share, budget in ((share, round(share * rows)) for share in every)
        if not start or share in of.onward
    ]


def cost(name: str, file: str) -> Record:
    """Of a head over a pass, on canvases of which nothing is known."""
    guided = with_head(load(name, precision="bfloat16"), file)
    tokens = torch.full((16, {"antiberty": 116, "protein": 75}.get(name, 32)), guided.vocab.size)
    return cost_records({name: (guided.backbone, guided.head)}, tokens)[0]  # type: ignore[dict-item]


def file_of(options: argparse.Namespace, name: str, kind: str, work: Record) -> Path:
    """Where a head is put."""
    return Path(options.store / f"{name}-{kind}-{work['budget']}-{'shipped' if work['start'] else 'nothing'}.safetensors")


def curve(name: str, kind: str, options: argparse.Namespace, ledger: Ledger) -> None:
    """All heads of a backbone, and the one in the package, on the same states; with --rows one, from labels that cost so many."""
    (tested, how), (drawn, settings) = (read_store(options.store / f"{name}-{part}") for part in ("test", kind))
    stop, test = halves(tested)
    depends = {"heads": name, "test": len(test), "form": how["form"], "draws": settings.get("draws"), "positions": settings["positions"]}
    if not options.rows:
        if SETTINGS[name].onward:
            ledger.measured(depends | {"head": "in the package"}, lambda: scored(name, name, test))
        named = tested if how["form"] == "kl" else read_store(options.store / f"{name}-test-kl")[0]
        ledger.measured({"heads": name, "beyond": len(named)}, lambda: beyond(named, load(name).vocab.size))
    rows = int(drawn.rows.sum())
    shares = [options.rows / rows] if options.rows else options.shares
    every = [work for work in works(name, rows, shares or SHARES) if not (options.rows and work["start"])]
    depends |= {"equal": True} if options.rows else {}

    @functools.cache
    def job() -> Distill:  # for as many labels as any head needs that is not made yet
        model, of = load(name, precision="bfloat16"), SETTINGS[name]
        some = within_rows(drawn, max(work["budget"] for work in every if ledger.find(depends | work) is None))
        config = DistillConfig(batch=BATCH, precision="bfloat16")
        found = Distill(model, make_head("low-rank", model, of.layers, of.sizes, 0), of.layers, some, settings, config, held_out=stop)
        if how["form"] != settings["form"]:
            cut(found.buckets, settings)
        return found

    for work in every:

        def measure(work: Record = work, file: Path = file_of(options, name, kind, work)) -> Record:  # noqa: B008 (called at once)
            about = made(about_to(job(), name, within_rows(drawn, work["budget"]), work), work["steps"], file)
            return about | scored(name, str(file), test) | {"bytes": file.stat().st_size}

        print(name, ledger.measured(depends | work, measure), flush=True)
    if options.rows:
        return
    best_of = max(every, key=lambda work: ledger.find(depends | work)["R2 to stop by"])  # type: ignore[index]
    print(name, ledger.measured(depends | best_of | {"cost": True}, lambda: cost(name, str(file_of(options, name, kind, best_of)))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", choices=[*SETTINGS, []], metavar="MODEL")
    parser.add_argument("--store", type=Path, default=Path("runs/sampled"), help="where the labels are")
    parser.add_argument("--records", type=Path, default=RECORDS / "sampled_heads.jsonl")
    parser.add_argument("--labels", nargs="+", default=["train"], help="which labels are learnt from")
    parser.add_argument("--rows", type=int, default=0, help="of the labels, one head for each kind; default: shares of all")
    parser.add_argument("--shares", nargs="*", type=float, help="make the heads of these shares of the rows only")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.models:
        for kind in options.labels:
            curve(name, kind, options, Ledger(options.records))


if __name__ == "__main__":
    main()
