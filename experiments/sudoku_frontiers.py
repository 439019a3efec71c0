"""Rules on the same Sudoku boards, each beside sequential decoding: quality, passes, rows and time; of any 9x9 model, here or on Ray.

    python experiments/sudoku_frontiers.py solve --rules eb mi-bound:budget=0.3 --verify
    python experiments/sudoku_frontiers.py generate --records runs/generate.jsonl --engine ray --workers 16

Settings are to be chosen on --split validation and reported on test. What --records holds is not measured again.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from pairmi.bench import report
from pairmi.bench.ledger import Ledger
from pairmi.commands.engine import chosen_engine, loading_device, results_alone
from pairmi.commit import Sampling
from pairmi.loading import load
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import rule
from pairmi.spread.units import Failure, Incomplete
from pairmi.types import PairmiError
from studies import frontiers
from studies.boards import KINDS, make_boards


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=("solve", "generate"), help="puzzles, or unconditional generation")
    parser.add_argument("--backbone", default="sudoku")
    parser.add_argument("--head")
    parser.add_argument("--limit", type=int, default=1000, help="how many boards")
    parser.add_argument("--rules", nargs="+", metavar="SPEC", help="only these, beside 'sequential'; default: every rule at its defaults")
    parser.add_argument("--verify", action="store_true", help="also with verification")
    parser.add_argument("--batch", type=int, default=128, help="boards decoded at once; changes the time only")
    parser.add_argument("--split", default="test", choices=("validation", "test"))
    parser.add_argument("--boards", choices=KINDS, help="default: puzzles, or empty ones; open = 12 givens")
    parser.add_argument("--temperature", type=float, help="0 = the likeliest symbols; default: 0 for puzzles, else 1")
    parser.add_argument("--accept", type=float, default=0.999, help="at temperature 0 with --verify: how sure the conditional must be")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--records", type=Path, help="a file of measurements: what it holds is not measured again")
    parser.add_argument("--json", type=Path, help="write the records into this file, one a line")
    parser.add_argument("--figure", type=Path, help="draw the frontiers into this file")
    parser.add_argument("--engine", default="local", choices=("local", "ray"))
    parser.add_argument("--workers", type=int)
    parser.add_argument("--gpus-per-worker", type=float, default=0.0)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables, draw the frontiers; what could not be measured is raised after all that."""
    options = parsed(arguments)
    engine, solving, records = chosen_engine(options), options.name == "solve", list[dict[str, Any]]()
    specs = list(dict.fromkeys((frontiers.REFERENCE, *(options.rules or CATALOGUE))))
    temperature = (0.0 if solving else 1.0) if options.temperature is None else options.temperature
    seed = options.seed if options.split == "test" else options.seed + 1  # empty boards of the splits differ by their draws
    sampling = Sampling(seed=seed, temperature=temperature or 1.0, greedy=temperature == 0, accept=options.accept)
    attention = any("attention" in spec for spec in specs)
    model = load(options.backbone, head=options.head, attention=attention, device=loading_device(options))
    if model.length != 81 or model.vocab.size != 9:
        raise PairmiError(f"{options.backbone} is no 9x9 Sudoku model")
    for spec in specs:
        rule(spec, model)  # refuse what cannot be before anything starts
    boards = make_boards(options.boards or ("puzzles" if solving else "empty"), options.limit, options.split)
    ways = (False, True) if options.verify else (False,)
    measuring = frontiers.sweep(model, boards, specs, sampling, Ledger(options.records), options.batch, ways, engine, failed)
    incomplete = None
    with results_alone():
        try:
            records.extend(tqdm(measuring, total=len(specs) * len(ways), desc=options.name, file=sys.stderr))
        except Incomplete as error:
            incomplete = error
    if options.json:
        options.json.write_text("".join(json.dumps(record) + "\n" for record in records))
    if any(map(frontiers.is_reference, records)):  # else it is what failed, and there is nothing to compare with
        show(records)
    if options.figure:
        report.draw_frontiers(frontiers.panels(records), "passes", "quality", options.figure)
    if incomplete is not None:
        raise incomplete


def failed(failure: Failure) -> None:
    tqdm.write(f"failed {failure}", file=sys.stderr)


def show(records: list[dict[str, Any]]) -> None:
    """Every setting, then of each rule the fewest passes at which nothing is lost."""
    reference = frontiers.reference_among(records)
    print(report.table(frontiers.rows_for_people(records, reference), frontiers.COLUMNS))
    print("\nFewest passes of each rule within one point of sequential decoding:\n")
    best = sorted(frontiers.loss_free(records, reference), key=lambda record: float(record["passes"]))
    print(report.table(frontiers.rows_for_people(best, reference), frontiers.COLUMNS))


if __name__ == "__main__":
    main()
