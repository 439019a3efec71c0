"""What each command of the command line does."""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from pairmi import api
from pairmi.bench import report
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import EMBEDDED, ESTIMATES, Model, load, parameters
from pairmi.tasks.tables import WORLDS
from pairmi.types import PairmiError


def canvas_lines(argument: str) -> Iterator[tuple[str, str]]:
    """Canvases with their names for messages: the argument itself, the lines of a file, or those of standard input."""
    if argument == "-":
        yield from _numbered("standard input", sys.stdin)
    elif os.path.isfile(argument):  # Path.is_file raises where a long canvas is no possible file name
        with Path(argument).open() as lines:
            yield from _numbered(argument, lines)
    elif "/" in argument or argument.endswith(".txt"):
        raise PairmiError(f"canvas: no file {argument}")
    else:
        yield "canvas", argument


def _numbered(source: str, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    some = False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and not text.startswith("#"):
            some = True
            yield f"{source}, line {number}", text
    if not some:
        raise PairmiError(f"canvas: {source} holds no canvas")


def mi(options: argparse.Namespace) -> None:
    """`pairmi mi`."""
    model = load(options.backbone, head=options.head)
    results = []
    for number, (name, text) in enumerate(canvas_lines(options.canvas)):
        tokens = api.tokenise(model, text, name)
        if options.mi == "head":
            found = api.estimated(model, tokens[None])[0]
        else:
            found = api.mutual_information(model, [tokens], form=options.form, floor=options.floor, batch_size=options.batch)[0]
        pairs = found.strongest(options.top)
        if number == 0 and options.figure:
            report.draw_map(
                found.matrix.numpy(), [model.place(i) for i in range(len(tokens))], f"{model.name}: {text[:60]}", options.figure
            )
        if options.json:
            record = {name: value.tolist() if isinstance(value, torch.Tensor) else value for name, value in asdict(found).items()}
            record |= {"bound": None} if options.mi == "head" else {}
            results.append({"canvas": text, "strongest": [{"i": i, "j": j, "nats": nats} for i, j, nats in pairs]} | record)
            continue
        within = "an estimate" if options.mi == "head" else f"every entry within {float(found.bound.max()):.2g} nats of the full probe"
        print(f"{text}\n  {found.rows} rows evaluated; {within}")
        for i, j, nats in pairs:
            print(f"  {model.place(i):>6} - {model.place(j):<6} {nats:.3f} nats")
    if options.json:
        print(json.dumps({"backbone": model.name, "mi": options.mi, "form": options.form, "floor": options.floor, "results": results}))


def _checked_canvases(model: Model, options: argparse.Namespace) -> Iterator[tuple[int, str, torch.Tensor]]:
    for number, (name, text) in enumerate(canvas_lines(options.canvas)):
        try:
            tokens = api.tokenise(model, text, name)
            found = model.search(tokens) if model.search is not None else None
            if found is not None and not found[0] and not options.anyway:
                raise PairmiError(f"{name}: {found[1]}; --anyway fills it all the same")
            if found is not None:
                print(f"pairmi decode: {name}: {found[1]}", file=sys.stderr)
            yield number, text, tokens
        except PairmiError as error:
            if not options.skip_invalid:
                raise
            print(f"pairmi decode: skipped {error}", file=sys.stderr)


def decode(options: argparse.Namespace) -> None:
    """`pairmi decode`: batch by batch, in input order; a canvas draws from the stream of its place in the input."""
    if options.batch < 1:
        raise PairmiError(f"--batch {options.batch}: must be at least 1")
    model = load(options.backbone, attention="mi=attention" in options.rule, head=options.head)
    selector = api.resolve(options.rule, model)
    canvases = _checked_canvases(model, options)
    header = {"backbone": model.name, "rule": options.rule, "seed": options.seed, "temperature": options.temperature}
    opening = separator = json.dumps(header)[:-1] + ', "results": ['  # printed with the first result: bad input prints nothing
    while batch := list(islice(canvases, options.batch)):
        numbers, texts, tokens = (list(column) for column in zip(*batch, strict=True))
        outs = api.decode(
            model,
            tokens,
            selector,
            verify=options.verify,
            seed=options.seed,
            temperature=options.temperature,
            greedy=options.greedy,
            accept=options.accept,
            batch_size=options.batch,
            steps=options.trace,
            index=numbers,
        )
        for text, out in zip(texts, outs, strict=True):
            if options.json:
                steps = {"steps": [asdict(step) for step in out.steps]} if options.trace else {}
                print(
                    separator,
                    json.dumps({"canvas": text, "text": out.text, "passes": out.passes, "rows": out.rows} | steps),
                    sep="",
                    end="",
                )
                separator = ",\n"
            else:
                _print_filled(model, out)
        sys.stdout.flush()
    if options.json:
        print((opening if separator == opening else "") + "]}")


def _print_filled(model: Model, out: api.Filled) -> None:
    print(f"{out.text}\t{out.passes} passes\t{out.rows} rows")
    for number, step in enumerate(out.steps, 1):
        print(f"  pass {number}: " + ", ".join(f"{model.place(i)}={symbol}" for i, symbol in step.filled.items()))
        for i, reason in step.waiting.items():
            print(f"    {model.place(i)} waits: {reason}")


def rules(options: argparse.Namespace) -> None:
    """`pairmi rules`."""
    rows = [
        {"name": name, "parameters": parameters(name), "about": (rule.__doc__ or "").splitlines()[0], "reference": vars(rule)["reference"]}
        for name, rule in CATALOGUE.items()
    ]
    if options.json:
        print(json.dumps(rows))
        return
    for row in rows:
        defaults = ",".join(f"{key}={value}" for key, value in row["parameters"].items())
        print(f"{row['name']}:{defaults}\n    {row['about']}\n    {row['reference']}")
    print(f"\nmi = {' | '.join(ESTIMATES)}; with mi=probe also form=joint|kl|entropy and floor=NATS")
    print(f"models: {', '.join(EMBEDDED)}; exact worlds: {', '.join(WORLDS)}")


def data(options: argparse.Namespace) -> None:
    """`pairmi data`."""
    from pairmi.tasks.sudoku.formats import to_text
    from pairmi.tasks.sudoku.puzzles import unique_puzzles
    from pairmi.tasks.sudoku.solver import difficulty

    low, _, high = options.givens.partition("-")
    if not low.isdigit() or (high and not high.isdigit()):
        raise PairmiError(f"--givens {options.givens}: expected a number such as 27 or a range such as 25-29")
    if options.csv:
        print("puzzle,solution,givens,difficulty")
    for number in range(options.count):
        made = unique_puzzles(1, options.seed * 1_000_003 + number, (int(low), int(high or low)))
        puzzle = to_text(made.canvases[0])
        extra = f",{to_text(made.solutions[0])},{int(made.givens[0])},{difficulty(made.canvases[0].numpy())}"
        print(puzzle + (extra if options.csv else ""))


def train(options: argparse.Namespace) -> None:
    """`pairmi train`."""
    from pairmi.training.run import train_denoiser, train_head

    if options.threads:
        torch.set_num_threads(options.threads)
    (train_head if options.what == "head" else train_denoiser)(options)


def labels(options: argparse.Namespace) -> None:
    """`pairmi labels`."""
    from pairmi.mi.probe import Probe
    from pairmi.training.labels import make_labels
    from pairmi.training.states import SudokuStates

    if options.threads:
        torch.set_num_threads(options.threads)
    number, _, of = options.part.partition("/")
    if not (number.isdigit() and of.isdigit()):
        raise PairmiError(f"--part {options.part}: expected K/N, such as 0/2")
    model = load(options.backbone)
    if model.conflict is None:
        raise PairmiError(f"labels: {options.backbone} is no 9x9 Sudoku model; states can be drawn for Sudoku only")
    probe = Probe(options.form, options.floor, options.batch)
    part = (int(number), int(of))
    make_labels(model, SudokuStates(), options.out, options.states, seed=options.seed, probe=probe, shard=options.shard, part=part)


def bench(options: argparse.Namespace) -> None:
    """`pairmi bench`."""
    from pairmi.bench import speed, worlds
    from pairmi.bench.grid import all_settings

    if options.name == "speed":
        records = list(tqdm(speed.selection_times(options.limit or 256), total=len(CATALOGUE), desc="speed", file=sys.stderr))
        print(report.table(records, ("rule", "selection_ms", "pass_ms", "share")))
    elif options.name in ("head", "probe"):
        if options.labels is None:
            raise PairmiError(f"bench {options.name}: --labels DIR is missing; make labels with 'pairmi labels'")
        records = (_bench_head if options.name == "head" else _bench_probe)(options)
    else:
        names, specs = options.worlds or list(WORLDS), options.rules or all_settings()
        for name in set(names) - set(WORLDS):
            raise PairmiError(f"bench exact: unknown world {name!r}; known: {', '.join(WORLDS)}")
        ways = (False, True) if options.verify else (False,)
        total = len(names) * len(specs) * len(ways)
        records = list(tqdm(worlds.sweep(names, specs, ways), total=total, desc="exact", file=sys.stderr))
        print("Fewest passes of each rule at which nothing is lost (KL = 0), from the empty canvas:\n")
        print(report.table(worlds.lossless(records), ("world", "rule", "verified", "passes", "rows", "accepted")))
        if options.figure:
            panels = {name: [r for r in records if r["world"] == name and not r["verified"]] for name in names}
            report.draw_frontiers(panels, "passes", "agreement", options.figure)
    if options.json:
        options.json.write_text("".join(json.dumps(record) + "\n" for record in records))


def _bench_head(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Fidelity on test grids, by source and by masked fraction, then the cost beside a pass."""
    from pairmi.bench import head, head_cost
    from pairmi.spec import with_head
    from pairmi.store import read_store

    found, settings = read_store(options.labels, options.limit)
    test, model = found.split("test"), load(options.backbone, attention=True)
    records = head.fidelity_records(model, test, settings, options.head)
    for group in dict.fromkeys(record["group"] for record in records):
        print(f"\n{group}\n{report.table([r for r in records if r['group'] == group], head.COLUMNS)}")
    plain = load(options.backbone)
    readers = {name: with_head(plain, name) for name in options.head}
    heads = {name: (reader, reader.head) for name, reader in readers.items() if reader.head is not None}
    empty = torch.full((256, test.tokens.shape[1]), model.vocab.size)
    costs = head_cost.cost_records(heads, empty)
    print(f"\n{report.table(costs, ('head', 'parameters', 'head_mflop', 'flop_share', 'head_ms', 'pass_ms', 'time_share', 'rows'))}")
    if options.figure and options.head:
        head.draw_calibration(head.calibration_curves(plain, test, options.head), options.figure)
    return records + costs


def _bench_probe(options: argparse.Namespace) -> list[dict[str, Any]]:
    """What pruning saves, whether its certificates hold, how fast labelling is, and how symmetric the model's beliefs are."""
    from pairmi.bench import probing
    from pairmi.mi.probe import Probe
    from pairmi.store import read_store

    found, settings = read_store(options.labels)
    model, probe = load(options.backbone), Probe(settings["form"], settings["floor"])
    records = probing.rows_records(found, settings)
    print(report.table(records, ("group", "states", "rows", "full", "fewer", "certificate", "asymmetry", "inconsistency")))
    some = found.tokens[torch.arange(0, len(found), max(1, len(found) // (options.limit or 64)))][: options.limit or 64]
    extra = [probing.confirmed(model, some, probe), probing.throughput(model, some, probe)]
    extra.append(probing.equivariance(model, some, probe, torch.Generator().manual_seed(0)))
    for record in extra:
        print(f"\n{report.table([record], tuple(record))}")
    return records + extra
