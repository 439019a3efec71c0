"""`pairmi bench`."""

import argparse
import json
import sys
from typing import Any

import torch
from tqdm import tqdm

from pairmi.bench import report
from pairmi.commands import frontiers
from pairmi.commands.engine import chosen_engine
from pairmi.loading import load
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spread.local import Local
from pairmi.tasks.tables import WORLDS
from pairmi.types import PairmiError

BOARDS = ("sudoku-solve", "sudoku-generate", "head-vs-exact")


def run(options: argparse.Namespace) -> None:
    """`pairmi bench`."""
    from pairmi.bench import speed, worlds
    from pairmi.bench.grid import all_settings

    engine, incomplete = chosen_engine(options), None
    if options.name not in BOARDS and not isinstance(engine, Local):
        raise PairmiError(f"bench {options.name}: is done in this process; --engine ray is for {', '.join(BOARDS)}")
    if options.name == "speed":
        records = list(tqdm(speed.selection_times(options.limit or 256), total=len(CATALOGUE), desc="speed", file=sys.stderr))
        print(report.table(records, ("rule", "selection_ms", "pass_ms", "share")))
    elif options.name in BOARDS:
        records, incomplete = frontiers.run(options, engine)
    elif options.name in ("head", "probe"):
        if options.labels is None:
            raise PairmiError(f"bench {options.name}: --labels DIR is missing; make labels with 'pairmi labels'")
        records = (_bench_head if options.name == "head" else _bench_probe)(options)
    elif options.name in ("protein", "contacts"):
        from pairmi.commands import bench_protein

        records = (bench_protein.run_protein if options.name == "protein" else bench_protein.run_contacts)(options)
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
    if incomplete is not None:
        raise incomplete


def _bench_head(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Fidelity on test grids or families, by source and by masked fraction, then the cost beside a pass."""
    from pairmi.bench import head, head_cost
    from pairmi.loading import with_head
    from pairmi.store import read_store

    found, settings = read_store(options.labels, options.limit)
    test, model = found.split("test"), load(options.backbone, attention=True)
    records = head.fidelity_records(model, test, settings, options.head)
    for group in dict.fromkeys(record["group"] for record in records):
        print(f"\n{group}\n{report.table([r for r in records if r['group'] == group], head.COLUMNS)}")
    plain = load(options.backbone)
    readers = {name: with_head(plain, name) for name in options.head}
    heads = {name: (reader, reader.head) for name, reader in readers.items() if reader.head is not None}
    costs = head_cost.cost_table(heads, max((some for _, some in test.by_length()), key=len).tokens, model.vocab.size)
    print(f"\n{report.table(costs, head_cost.COLUMNS)}")
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
    print(report.table(records, probing.ROWS))
    some = probing.sample(found, options.limit or 64)
    extra = [probing.confirmed(model, some, probe), probing.throughput(model, some, probe)]
    if model.task.conflict is not None:
        extra.append(probing.equivariance(model, some, probe, torch.Generator().manual_seed(0)))
    for record in extra:
        print(f"\n{report.table([record], tuple(record))}")
    return records + extra
