"""`pairmi bench sudoku-solve` and `sudoku-generate`: rules on the same boards."""

import argparse
import sys
from typing import Any

from tqdm import tqdm

from pairmi.bench import frontiers, report
from pairmi.bench.boards import make_boards
from pairmi.bench.ledger import Ledger
from pairmi.commands.engine import chosen_engine, loading_device, results_alone
from pairmi.commit import Sampling
from pairmi.loading import load
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import rule
from pairmi.spread.units import Failure, Incomplete
from pairmi.types import PairmiError


def run(options: argparse.Namespace, records: list[dict[str, Any]]) -> None:
    """Measure, print the tables, draw the frontiers; what could not be measured is raised after all that."""
    engine, solving = chosen_engine(options), options.name == "sudoku-solve"
    specs = list(dict.fromkeys((frontiers.REFERENCE, *(options.rules or CATALOGUE))))
    temperature = (0.0 if solving else 1.0) if options.temperature is None else options.temperature
    seed = options.seed if options.split == "test" else options.seed + 1  # empty boards of the splits differ by their draws
    sampling = Sampling(seed=seed, temperature=temperature or 1.0, greedy=temperature == 0, accept=options.accept)
    attention = any("attention" in spec for spec in specs)
    model = load(options.backbone, head=options.head, attention=attention, device=loading_device(options))
    if model.length != 81 or model.vocab.size != 9:
        raise PairmiError(f"bench {options.name}: {options.backbone} is no 9x9 Sudoku model")
    for spec in specs:
        rule(spec, model)  # refuse what cannot be before anything starts
    boards = make_boards(options.boards or ("puzzles" if solving else "empty"), options.limit, options.split)
    ways = (False, True) if options.verify else (False,)
    measuring = frontiers.sweep(model, boards, specs, sampling, Ledger(options.records), options.batch, ways, engine, _report)
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
    if incomplete is not None:
        raise incomplete


def _report(failure: Failure) -> None:
    tqdm.write(f"pairmi bench: failed {failure}", file=sys.stderr)


def show(records: list[dict[str, Any]]) -> None:
    """For people: every setting, then of each rule the fewest passes at which nothing is lost."""
    reference = frontiers.reference_among(records)
    print(report.table(frontiers.rows_for_people(records, reference), frontiers.COLUMNS))
    print("\nFewest passes of each rule within one point of sequential decoding:\n")
    best = sorted(frontiers.loss_free(records, reference), key=lambda record: float(record["passes"]))
    print(report.table(frontiers.rows_for_people(best, reference), frontiers.COLUMNS))
