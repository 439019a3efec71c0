"""`pairmi bench`."""

import argparse
import sys
from typing import Any

import torch
from tqdm import tqdm

from pairmi.bench import report
from pairmi.commands.document import dumped
from pairmi.loading import load, with_head
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import rule
from pairmi.tasks.tables import WORLDS
from pairmi.types import PairmiError

Records = list[dict[str, Any]]


def run(options: argparse.Namespace) -> None:
    """`pairmi bench NAME`: print its tables and write its records."""
    from pairmi.commands.bench_protein import run_contacts, run_protein

    benchmarks = {"exact": _exact, "speed": _speed, "head": _head, "probe": _probe, "protein": run_protein, "contacts": run_contacts}
    records: Records = []
    benchmarks[options.name](options, records)
    if options.json:
        options.json.write_text("".join(dumped(record) + "\n" for record in records))


def _exact(options: argparse.Namespace, records: Records) -> None:
    from pairmi.bench import worlds
    from pairmi.bench.grid import all_settings

    names, specs = options.worlds or list(WORLDS), options.rules or all_settings()
    for name in set(names) - set(WORLDS):
        raise PairmiError(f"bench exact: unknown world {name!r}; known: {', '.join(WORLDS)}")
    for spec in specs:
        rule(spec, load(names[0]))  # refuse what cannot be before anything starts
    ways = (False, True) if options.verify else (False,)
    records += tqdm(worlds.sweep(names, specs, ways), total=len(names) * len(specs) * len(ways), desc="exact", file=sys.stderr)
    print("Of each rule the setting with the fewest passes at which nothing is lost (KL = 0), else the one that loses least, from the")
    print("empty canvas, with exact MI given; kl: nats lost; valid: share of what it makes that the world allows\n")
    print(report.table(worlds.best(records), ("world", "rule", "verified", "passes", "rows", "accepted", "kl", "valid")))
    if options.figure:
        panels = {name: [r for r in records if r["world"] == name and not r["verified"]] for name in names}
        report.draw_frontiers(panels, "passes", "agreement", options.figure)


def _speed(options: argparse.Namespace, records: Records) -> None:
    from pairmi.bench import block_costs, speed

    torch.set_num_threads(1)
    if options.block is not None:
        records += block_costs.block_costs(options.symbols or 126_464, options.length or 512, options.block)
        print(report.table(records, block_costs.COLUMNS))
        return
    if options.symbols is None:
        found, total = speed.selection_times(options.limit or 256), len(CATALOGUE)
        columns: tuple[str, ...] = ("rule", "beside_ms", "pass_ms", "share")
    else:
        found, total = speed.decoding_costs(options.symbols, options.length or 128, options.limit or 2), 2 * len(CATALOGUE)
        columns = ("rule", "verified", "beside_ms", "softmaxes", "predictions")
    records += tqdm(found, total=total, desc="speed", unit="rule", file=sys.stderr)
    print(report.table(records, columns))


def _head(options: argparse.Namespace, records: Records) -> None:
    """Fidelity on test grids or families, by source and by masked fraction, then the cost beside a pass."""
    from pairmi.bench import head, head_cost
    from pairmi.store import read_store

    found, settings = read_store(options.labels, options.limit)
    test, model = found.split("test"), load(options.backbone, attention=True)
    records += head.fidelity_records(model, test, settings, options.head)
    for group in dict.fromkeys(record["group"] for record in records):
        print(f"\n{group}\n{report.table([r for r in records if r['group'] == group], head.COLUMNS)}")
    plain = load(options.backbone)
    readers = {name: with_head(plain, name) for name in options.head}
    heads = {name: (reader, reader.head) for name, reader in readers.items() if reader.head is not None}
    costs = head_cost.cost_table(heads, max((some for _, some in test.by_length()), key=len).tokens, model.vocab.size)
    print(f"\n{report.table(costs, head_cost.COLUMNS)}")
    if options.figure and options.head:
        head.draw_calibration(head.calibration_curves(plain, test, options.head), options.figure)
    records += costs


def _probe(options: argparse.Namespace, records: Records) -> None:
    """What pruning saves, whether its certificates hold, and how fast labelling is."""
    from pairmi.bench import probing
    from pairmi.mi.probe import Probe
    from pairmi.store import read_store

    found, settings = read_store(options.labels)
    if "draws" in settings:
        raise PairmiError(f"bench probe: {options.labels} holds labels from draws, of which nothing was pruned; give exact ones")
    model, probe = load(options.backbone), Probe(settings["form"], settings["floor"])
    records += probing.rows_records(found, settings)
    print(report.table(records, probing.ROWS))
    some = probing.sample(found, options.limit or 64)
    for record in (probing.confirmed(model, some, probe), probing.throughput(model, some, probe)):
        print(f"\n{report.table([record], tuple(record))}")
        records.append(record)
