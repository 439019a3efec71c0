"""Protein design in fewer passes: ProteinMPNN on 20 structures, each designed with a head that never saw it. Results go to docs/design.md.

    python experiments/protein_design.py --folder PDB [--part labels|heads|settings|prices|designs|table] [--designs 25] [--page]

Labels and heads come first; labels stay in --work. The structures are dealt into two folds; a fold's head, charges and settings are made on
the other one. Every measurement, of one structure and method each, is kept in --records: an interrupted run goes on where it stopped.
Without --part everything is measured; --page writes the page from what the records hold.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch

from pages.design import METHODS, SUMMED, TEMPERATURES, Method, page
from pairmi import api
from pairmi.backbones.checkpoint import fingerprint, load_tensors, save_tensors
from pairmi.backbones.proteinmpnn import ProteinMPNN
from pairmi.bench import protein
from pairmi.bench.generation import generate
from pairmi.bench.ledger import Ledger, depends_on
from pairmi.commands.design import sequential_scores
from pairmi.loading import load
from pairmi.mi.head import LowRankHead
from pairmi.mi.probe import Probe
from pairmi.mi.sampled import SampledProbe
from pairmi.model import Model
from pairmi.pricing.calibrate import fit_charge
from pairmi.pricing.price import measure
from pairmi.pricing.walk import Members, Watched, joined_members
from pairmi.selectors.charge import Calibration
from pairmi.selectors.wrappers import Coupled
from pairmi.store import read_store
from pairmi.tasks.protein.scaffold import read_scaffold
from pairmi.training.distill import Distill, DistillConfig, export_head, make_head
from pairmi.training.labels import Effort, make_labels
from pairmi.training.length_buckets import typical_share
from pairmi.training.loop import fit, read_log
from pairmi.training.optimizer import Rates
from pairmi.training.structures import StructureStates, load_structures, without
from pairmi.tuning import calibrated_rule
from pairmi.types import PairwiseMI, Selector
from studies.coupling_models import SummedTables
from studies.protein_figure import draw_protein

FOLDS = (0, 1)
LAYERS = (0, 3)  # the encoder's states and the last ones
SIZES = {"inner": 64, "forms": 8, "rank": 8, "mixer": 32, "places": 16}
CONFIG = DistillConfig(batch=32, loss="poisson", validation=1000, rates=Rates(muon=0.015, adam=3e-3))
BUDGETS = (0.02, 0.1)  # nats a pass, that charges are fitted at
ROUNDS = 3
CALIBRATING, CHOOSING, PRICING, DESIGNING = 1_000_003, 2_000_003, 3_000_003, 0  # seeds
FAMILIES: Mapping[str, Sequence[str]] = {
    "top-k": [f"top-k:k={k}" for k in (2, 4, 8)],
    "top-k, random order": [f"top-k:k={k},by=random" for k in (2, 4, 8)],
    "eb": [f"eb:budget={b}" for b in (1, 4, 8, 16)],
    "mi-bound": [f"mi-bound:budget={b},order={o}" for o in ("lowest-entropy", "highest-entropy") for b in (0.01, 0.02, 0.05, 0.1)],
    "contacts instead of MI": [
        "independent-set:mi=structural,threshold=0.5",
        *(f"mi-bound:mi=structural,budget=0.1,order={o}" for o in ("lowest-entropy", "highest-entropy")),
    ],
    "mi-bound, calibrated": [f"mi-bound:charge=calibrated,budget={b}" for b in (0.005, 0.01, 0.02, 0.05)],
}
TABLE = (*protein.TABLE_2[1:], "mi-bound:budget=0.02,order=highest-entropy", "mi-bound:charge=calibrated,budget=0.02")
Record = dict[str, Any]


def files(options: argparse.Namespace) -> list[Path]:
    found = sorted(options.folder.glob("*.pdb"))[: options.structures]
    if len(found) < 2:
        raise SystemExit(f"protein_design: two or more PDB files are needed, {options.folder} has {len(found)}")
    return found


def fold_of(options: argparse.Namespace) -> dict[Path, int]:
    """By turns, in the order of their names."""
    return {file: number % len(FOLDS) for number, file in enumerate(files(options))}


def make_both_labels(ledger: Ledger, options: argparse.Namespace) -> None:
    """Unbiased labels to learn from, drawn, and exact ones of other states to judge by."""
    if all(head_file(fold, options).is_file() for fold in FOLDS):
        return  # they have been learnt from
    states = StructureStates(list(load_structures(options.folder).values()))
    model, drawn = states.model_of(0), SampledProbe(draws=1, batch_rows=64)
    make_labels(model, states, options.work / "labels", options.states, probe=drawn, shard=options.shard)
    make_labels(model, states, options.work / "exact", options.exact, seed=20, probe=Probe(), effort=Effort(2), shard=options.shard // 3)


def head_file(fold: int, options: argparse.Namespace) -> Path:
    """Beside the records, which are nothing without it."""
    return Path(options.records.with_name(f"{options.records.stem}-head-{fold}.safetensors"))


def trained(leave_out: Sequence[str], out: Path, options: argparse.Namespace) -> Path:
    """A head from the labels of all structures but some, which it is validated on; of all if none is left out."""
    run = options.work / out.stem
    if not out.is_file():
        labels, settings = read_store(options.work / "labels")
        own = load_structures(options.folder)
        model = next(iter(own.values()))
        train, _ = without(labels, leave_out, own)
        _, held_out = without(read_store(options.work / "exact")[0], leave_out, own)
        head = cast(LowRankHead, make_head("low-rank", model, LAYERS, SIZES, 0))
        head.begin_at(typical_share(train))
        job = Distill(model, head, LAYERS, train, settings, CONFIG, own=own, held_out=train if held_out is None else held_out)
        export_head(fit(job, run, steps=options.steps, warmup=50, decay=0.7, save_every=100, evaluate_every=200), out)
    return out


def heads(ledger: Ledger, options: argparse.Namespace) -> None:
    """A head for each fold, from the labels of the other."""
    for fold in FOLDS:
        out = trained([file.stem for file, own in fold_of(options).items() if own == fold], head_file(fold, options), options)
        ledger.measured({"what": "head", "fold": fold, "weights": fingerprint(load_tensors(out)[0])}, lambda: learnt_from(out, options))  # noqa: B023


def learnt_from(head: Path, options: argparse.Namespace) -> Record:
    """What a head has learnt from, and how good it is on the structures that it has not seen."""
    (labels, made_by), (exact, _) = (read_store(options.work / name) for name in ("labels", "exact"))
    score = read_log(options.work / head.stem / "log.jsonl")[-1]
    about = {"states": len(labels), "exact": len(exact), "draws": made_by.get("draws"), "steps": options.steps}
    return about | {"r2": score["r2"], "mae": score["mae"]}


def model_for(file: Path, head: Path | None, calibration: Calibration | None = None) -> Model:
    model = load("proteinmpnn", structure=file, head=None if head is None else str(head))
    return model if calibration is None else replace(model, calibration=calibration)


def calibration_for(fold: int, ledger: Ledger, options: argparse.Namespace) -> Calibration:
    """A charge for the head of a fold, fitted on some of the structures that the head was trained on."""
    head = head_file(fold, options)
    own = [file for file, other in fold_of(options).items() if other != fold][:: options.every]
    models = [model_for(file, head) for file in own]
    key = {"what": "calibration", **depends_on(models[0], "mi-bound"), "structures": [file.stem for file in own], "budgets": list(BUDGETS)}

    def fitted() -> Record:
        return {"calibration": fitted_charge(models, options.calibrating).about()}

    return Calibration.from_about(ledger.measured(key | {"sequences": options.calibrating, "rounds": ROUNDS}, fitted)["calibration"])


def fitted_charge(models: Sequence[Model], sequences: int) -> Calibration:
    """As `pairmi.calibrate`, over several structures: price, fit; price with the fitted charge on other draws, fit again to all."""
    seen, charge = list[Members](), None
    for number in range(ROUNDS):
        for model in models:
            watched, empty = Watched(cast(PairwiseMI, model.head)), torch.full((cast(int, model.length),), model.vocab.size)
            rules = {f"{budget:g}": calibrated_rule(watched, charge, budget) for budget in BUDGETS}
            found = measure(model, [empty] * sequences, rules, seed=CALIBRATING + number, watched=watched)
            seen += [price.members for price in found]
        charge = fit_charge(joined_members(seen))
    assert charge is not None
    return charge


def models(ledger: Ledger, options: argparse.Namespace) -> Iterator[tuple[Path, Model]]:
    """Each structure with a head and a charge that have not seen it; with --headless without both."""
    if options.headless:
        yield from ((file, model_for(file, None)) for file in files(options))
        return
    charges = {fold: calibration_for(fold, ledger, options) for fold in FOLDS}
    for file, fold in fold_of(options).items():
        yield file, model_for(file, head_file(fold, options), charges[fold])


def priced(file: Path, model: Model, specs: Sequence[str], temperature: float, seed: int, ledger: Ledger) -> None:
    """The price of rules on the empty sequence of a structure; those that choose alike and draw differently in one walk."""
    about = {"structure": file.stem, "temperature": temperature, "seed": seed}
    keys = {spec: {"what": "price"} | depends_on(model, spec.removesuffix(SUMMED)) | {"rule": spec} | about for spec in specs}
    missing = {spec: chosen(spec, model) for spec, key in keys.items() if ledger.find(key) is None}
    if missing:
        empty = torch.full((cast(int, model.length),), model.vocab.size)
        for spec, found in zip(missing, measure(model, [empty], missing, seed=seed, temperature=temperature), strict=True):
            ledger.add(
                keys[spec],
                {
                    "each": found.each.tolist(),
                    "passes": found.each_passes.tolist(),
                    "residues": len(empty),
                    "acceptance": found.acceptance,
                },
            )


def chosen(spec: str, model: Model) -> Selector:
    """A rule; with `draw=summed`, which only experiments have, its members are drawn from exact tables whose shifts add up."""
    if spec.endswith(SUMMED):
        return Coupled(api.resolve(spec.removesuffix(SUMMED), model), SummedTables())
    return api.resolve(spec, model)


def choose(ledger: Ledger, options: argparse.Namespace) -> None:
    """Every setting on a few structures, with seeds that nothing else is measured with."""
    for file, model in list(models(ledger, options))[:: options.every]:
        for family in FAMILIES.values():
            priced(file, model, family, 1.0, CHOOSING, ledger)


def methods(options: argparse.Namespace) -> list[Method]:
    mine = [method for method in METHODS if method.headless or not options.headless]
    return [method for method in mine if options.only is None or any(word in method.rule for word in options.only)]


def prices(ledger: Ledger, options: argparse.Namespace) -> None:
    """In rounds over all structures, one sequence each."""
    rules = list(dict.fromkeys(method.rule for method in methods(options) if method.priced))
    loaded = list(models(ledger, options))
    for number in range(options.sequences):
        for temperature in TEMPERATURES if number < options.sharpened else TEMPERATURES[:1]:
            for file, model in loaded:
                priced(file, model, rules, temperature, PRICING + number, ledger)


def designed(file: Path, model: Model, method: Any, numbers: range, ledger: Ledger, temperature: float) -> Record:
    """A few designs of one structure by one method."""
    key = {"what": "design", "structure": file.stem, **depends_on(model, method.rule), "verify": method.verify, "temperature": temperature}

    def measured() -> Record:
        scaffold, empty = read_scaffold(file), torch.full((cast(int, model.length),), model.vocab.size)
        start = time.process_time()
        how: Record = {"seed": DESIGNING, "temperature": temperature, "verify": method.verify, "index": list(numbers)}
        outs = api.decode(model, [empty] * len(numbers), method.rule, **how)
        seconds = time.process_time() - start
        tokens, native = torch.stack([out.tokens for out in outs]), model.vocab.encode(scaffold.text)
        scores = sequential_scores(cast(ProteinMPNN, model.backbone), tokens, torch.ones(len(empty), dtype=torch.bool))
        return {
            "texts": [out.text for out in outs],
            "passes": [out.passes for out in outs],
            "rows": [out.rows + out.probe_rows for out in outs],
            "recovery": (tokens == native).double().mean(1).tolist(),
            "scores": scores.tolist(),
            "seconds": seconds,
            "residues": len(empty),
        }

    return ledger.measured(key | {"numbers": [numbers.start, numbers.stop], "seed": DESIGNING}, measured)


def designs(ledger: Ledger, options: argparse.Namespace) -> None:
    """In rounds over all methods, the costly last, and structures."""
    loaded = list(models(ledger, options))
    for first in range(options.first, options.designs, options.round):
        numbers = range(first, min(first + options.round, options.designs))
        for method in (method for method in reversed(methods(options)) if method.designed):
            for file, model in loaded:
                designed(file, model, method, numbers, ledger, options.temperature)


def table(ledger: Ledger, options: argparse.Namespace) -> None:
    """The paper's table 2 for the structure of --table: 500 sequences of each rule against 500 made one by one."""
    file = options.folder / f"{options.table}.pdb"
    fold = fold_of(options)[file]
    model = model_for(file, head_file(fold, options), calibration_for(fold, ledger, options))
    kept, lengths = Ledger(options.records.with_name(f"{options.records.stem}-table.jsonl")), [cast(int, model.length)] * options.proteins
    key = {"what": "table", "structure": options.table, "count": options.proteins, "rules": [depends_on(model, spec) for spec in TABLE]}

    def measured() -> Record:
        reference, again = (generate(model, kept, "sequential", lengths, seed) for seed in (1, 2))
        reader = protein.embedder(model)
        yard = protein.yardstick(reader, reference.texts, protein.embed(reader, again.texts), 15)
        made = {"sequential": again} | {spec: generate(model, kept, spec, lengths, 3) for spec in TABLE}
        base = yard.count(again.texts)
        rows = [yard.judge(spec, one, base) | protein.quality(one.texts, reference.texts) for spec, one in made.items()]
        draw_protein(yard, {spec: one.texts for spec, one in made.items()}, rows, options.out.parent / "figures" / "design_table.png")
        return {"floor": vars(yard.floor), "rows": rows, "residues": model.length}

    ledger.measured(key, measured)


PARTS: dict[str, Callable[[Ledger, argparse.Namespace], Any]] = {
    "labels": make_both_labels,
    "heads": heads,
    "settings": choose,
    "prices": prices,
    "designs": designs,
    "table": table,
}


def ship(options: argparse.Namespace, out: Path) -> None:
    """The head from all structures, with a charge inside."""
    plain = trained([], options.work / "head-all.safetensors", options)
    chosen = [model_for(file, plain) for file in files(options)[:: 2 * options.every]]
    tensors, about = load_tensors(plain)
    save_tensors(out, tensors, about | {"calibration": fitted_charge(chosen, options.calibrating).about()})


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="PDB files")
    parser.add_argument("--work", type=Path, default=Path("runs/design"), help="labels and what training leaves behind")
    parser.add_argument("--states", type=int, default=1200, help="labelled by draws, that heads learn from")
    parser.add_argument("--exact", type=int, default=400, help="states labelled exactly, that heads are judged by")
    parser.add_argument("--shard", type=int, default=20, help="states of one structure at a time")
    parser.add_argument("--records", type=Path, default=Path("experiments/records/design.jsonl"))
    parser.add_argument("--part", choices=PARTS, help="measure this part alone, and write no page")
    parser.add_argument("--steps", type=int, default=120, help="of training a head")
    parser.add_argument("--structures", type=int, help="only so many")
    parser.add_argument("--every", type=int, default=7, help="charges and settings come from every so-manieth structure")
    parser.add_argument("--calibrating", type=int, default=2, help="sequences a structure that charges are fitted on")
    parser.add_argument("--sequences", type=int, default=4, help="that prices are measured on, a structure")
    parser.add_argument("--sharpened", type=int, default=1, help="the same at the temperature of the designs")
    parser.add_argument("--designs", type=int, default=25, help="a structure and method")
    parser.add_argument("--first", type=int, default=0, help="the number of the first design")
    parser.add_argument("--round", type=int, default=5, help="designs at a time")
    parser.add_argument("--only", nargs="+", help="of the methods those whose rules hold one of these words")
    parser.add_argument("--temperature", type=float, default=0.1, help="of the designs")
    parser.add_argument("--table", default="1CTF_A", help="the structure of the paper's table 2")
    parser.add_argument("--proteins", type=int, default=500, help="for that table")
    parser.add_argument("--headless", action="store_true", help="only the methods that need no head, and the page without one")
    parser.add_argument("--ship", type=Path, help="also train a head on all structures, with its charge, and write it here")
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page")
    parser.add_argument("--out", type=Path, default=Path("docs/design.md"))
    return parser.parse_args()


def main() -> None:
    options = parsed()
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("medium")  # oneDNN's products: two to three times as fast here, still in float32 without AMX
    ledger = Ledger(options.records)
    every = ["prices", "designs"] if options.headless else list(PARTS)
    for name in [] if options.page else [options.part] if options.part else every:
        PARTS[name](ledger, options)
    if options.ship:
        ship(options, options.ship)
    if options.part is None and not options.ship:
        text = page(ledger, options, CHOOSING, range(PRICING, PRICING + options.sequences))
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text)
        print(text)


if __name__ == "__main__":
    main()
