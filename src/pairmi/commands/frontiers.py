"""`pairmi bench sudoku-solve`, `sudoku-generate` and `head-vs-exact`: rules on the same boards."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tqdm import tqdm

from pairmi.bench import frontiers, report
from pairmi.bench.boards import make_boards
from pairmi.bench.grid import TABLE_1, board_settings
from pairmi.bench.ledger import Ledger
from pairmi.commands.engine import loading_device, results_alone
from pairmi.commit import Sampling
from pairmi.loading import load
from pairmi.spec import rule
from pairmi.spread.units import Engine, Failure, Incomplete

ESTIMATES = ("probe", "head", "shuffled", "structural", "attention")


@dataclass(frozen=True)
class Contest:
    """What a benchmark decodes, and by which rules if none are named."""

    kind: str
    greedy: bool
    rules: Sequence[str]
    count: int


def contest(name: str) -> Contest:
    """The benchmark of a name."""
    if name == "sudoku-solve":
        return Contest("puzzles", True, tuple(dict.fromkeys((*TABLE_1, *board_settings()))), 1000)
    if name == "sudoku-generate":
        return Contest("empty", False, board_settings(), 1000)
    specs = [f"mi-guided:budget={b},mi={mi}" for mi in ESTIMATES for b in (0.1, 0.3)]
    specs += [f"mi-bound:budget={b},entropy_weight=0.3,mi={mi}" for mi in ESTIMATES for b in (0.03, 0.1)]
    return Contest("puzzles", True, ("sequential", *specs), 64)


def run(options: argparse.Namespace, engine: Engine) -> tuple[list[dict[str, Any]], Incomplete | None]:
    """Measure, print the table and the comparisons, draw the frontiers; what could not be measured is left to the caller to raise."""
    what = contest(options.name)
    specs = list(dict.fromkeys(("sequential", *(options.rules or what.rules))))
    boards = make_boards(options.boards or what.kind, options.limit or what.count, options.split)
    greedy = what.greedy if options.temperature is None else False
    seed = options.seed if options.split == "test" else options.seed + 1  # empty boards of the splits differ by their draws
    sampling = Sampling(seed=seed, temperature=options.temperature or 1.0, greedy=greedy, accept=options.accept)
    attention, head = any("attention" in spec for spec in specs), options.head[0] if options.head else None
    model = load(options.backbone, head=head, attention=attention, device=loading_device(options))
    for spec in specs:
        rule(spec, model)  # refuse what cannot be before anything starts
    ways = (False, True) if options.verify else (False,)
    measuring = frontiers.sweep(model, boards, specs, sampling, Ledger(options.records), options.batch, ways, engine, _report)
    records: list[dict[str, Any]] = []
    incomplete = None
    with results_alone():
        try:
            for record in tqdm(measuring, total=len(specs) * len(ways), desc=options.name, file=sys.stderr):
                records.append(record)
        except Incomplete as error:
            incomplete = error
    if any(map(frontiers.is_reference, records)):  # else it is what failed, and there is nothing to compare with
        show(records)
    if options.figure:
        report.draw_frontiers(frontiers.panels(records), "passes", "quality", options.figure)
    return records, incomplete


def _report(failure: Failure) -> None:
    tqdm.write(f"pairmi bench: failed {failure}", file=sys.stderr)


def show(records: list[dict[str, Any]]) -> None:
    """For people: every setting, then of each rule the fewest passes at which nothing is lost, then the areas."""
    reference = frontiers.reference_among(records)
    print(report.table(frontiers.rows_for_people(records, reference), frontiers.COLUMNS))
    print("\nFewest passes of each rule within one point of one-by-one decoding:\n")
    best = sorted(frontiers.loss_free(records, reference), key=lambda record: float(record["passes"]))
    print(report.table(frontiers.rows_for_people(best, reference), frontiers.COLUMNS))
    print(f"\n{report.table(frontiers.areas(records), ('rule', 'area'))}")
