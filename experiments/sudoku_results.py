"""What dependence buys on 9x9 Sudoku: solving two sets of puzzles, generating, verified decoding, the paper's table 1. Results go to docs/results.md.

    python experiments/sudoku_results.py [--only PART ...]

Settings are chosen on validation boards, equally many for each rule, and reported on test boards. Every measurement is kept in --records,
so that an interrupted run goes on where it stopped; with --only some parts are measured and no page is written.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import torch
from tqdm import tqdm

from pages.sudoku import Found, Record, page, quickest
from pairmi.bench import report
from pairmi.bench.ledger import Ledger
from pairmi.commit import Sampling
from pairmi.decoding import decode
from pairmi.loading import load
from pairmi.model import Model
from pairmi.spec import looks_at_pairs, rule
from studies import frontiers
from studies.board_grid import DRAFTS, GENERATING, SOLVING, TABLE_1
from studies.board_measures import settings_of
from studies.boards import Boards, make_boards
from studies.failure_analysis import failure_analysis
from studies.uniformity import variety

make_boards = cache(make_boards)  # minimal puzzles take a while to find
GREEDY, DRAWN = Sampling(greedy=True), Sampling()
TUNED = replace(DRAWN, seed=1)  # other draws on the boards that settings are chosen on


@dataclass(frozen=True)
class Bench:
    """A model, and where its measurements are kept."""

    model: Model
    ledger: Ledger

    def run(self, what: str, boards: Boards, specs: Sequence[str], how: Sampling, verify: bool = False) -> list[Record]:
        """Every rule on the same boards."""
        ways = frontiers.sweep(self.model, boards, list(dict.fromkeys(specs)), how, self.ledger, verify=(verify,))
        return list(tqdm(ways, total=len(set(specs)), desc=what))

    def seconds(self, boards: Boards, spec: str, how: Sampling, number: int) -> Record:
        """CPU time a board, which other work on the machine hardly changes; round `number`."""

        def measure() -> Record:
            chosen_by, began = rule(spec, self.model), time.process_time()
            decode(self.model, boards.canvases, chosen_by, how)
            return {"seconds": (time.process_time() - began) / len(boards.canvases)}

        settings = settings_of(self.model, boards, spec, how) | {"what": "CPU time", "round": number}
        return self.ledger.measured(settings, measure)


def chosen(records: list[Record], slack: float) -> list[str]:
    """Of each rule and way of it the setting with the fewest passes that loses at most `slack` points on these (validation) boards."""
    best = frontiers.loss_free(records, frontiers.reference_among(records), slack)
    return ["sequential", *(record["settings"]["rule"] for record in best if record["settings"]["rule"] != "sequential")]


def tuned(bench: Bench, sizes: argparse.Namespace) -> list[Record]:
    """The grid for solving, on minimal validation puzzles."""
    return bench.run("solve, tuning", make_boards("minimal", sizes.validation, "validation"), ["sequential", *SOLVING], GREEDY)


def solving(bench: Bench, sizes: argparse.Namespace, kind: str, count: int) -> list[Record]:
    """What validation chose, on the first test puzzles of a kind; sequential decoding has been measured on all."""
    specs = chosen(tuned(bench, sizes), sizes.slack)
    (reference,) = bench.run(f"{kind}, sequential", make_boards(kind, sizes.test), specs[:1], GREEDY)
    return [first(reference, count), *bench.run(f"{kind}, best", make_boards(kind, count), specs[1:], GREEDY)]


def first(record: Record, count: int) -> Record:
    """What a measurement says of the first boards alone."""
    each = {what: values[:count] for what, values in record["each"].items()}
    means = {what: sum(map(float, each[of])) / count for what, of in (("quality", "good"), ("passes", "passes"), ("rows", "rows"))}
    return record | means | {"each": each, "boards": count}


def table_1(bench: Bench, sizes: argparse.Namespace) -> Found:
    """The paper's settings on the first minimal puzzles; sequential decoding has been measured on all."""
    (reference,) = bench.run("table 1", make_boards("minimal", sizes.test), TABLE_1[:1], GREEDY)
    others = bench.run("table 1", make_boards("minimal", sizes.table), TABLE_1[1:], GREEDY)
    return {"table": [first(reference, sizes.table), *others]}


def generating(bench: Bench, sizes: argparse.Namespace) -> Found:
    """The validation grid, plain and verified, and on the test boards what it chose."""
    tune, test = make_boards("empty", sizes.drawn_validation, "validation"), make_boards("empty", sizes.drawn)
    grid = bench.run("generate, tuning", tune, ["sequential", *GENERATING], TUNED)
    few = make_boards("empty", sizes.drafted, "validation")
    drafts = bench.run("generate, tuning drafts", few, DRAFTS, TUNED, verify=True)
    plain = first(grid[0], sizes.drafted)  # of the same boards
    best, drafted = chosen(grid, sizes.slack), [spec for spec in chosen([plain, *drafts], sizes.slack) if looks_at_pairs(spec)]
    return {
        "grid": grid,
        "drafts": drafts,
        "best": bench.run("generate, best", test, best, DRAWN),
        "verified": bench.run("generate, verified", make_boards("empty", sizes.verified), drafted, DRAWN, verify=True)
        if sizes.verified
        else [],
    }


def timing(bench: Bench, sizes: argparse.Namespace) -> Found:
    """CPU time of the quickest rules without loss, in turns."""
    ways = {kind: (GREEDY, solving(bench, sizes, kind, getattr(sizes, kind))) for kind in ("puzzles", "minimal")}
    ways["empty"] = (DRAWN, generating(bench, sizes)["best"])
    found: Found = {}
    for kind, (how, records) in ways.items():
        boards, rules = make_boards(kind, sizes.timed), [quickest(records, pairs) for pairs in (True, False)]
        turns = [(number, record["settings"]["rule"]) for number in range(sizes.rounds) for record in rules if record and all(rules)]
        found[kind] = [bench.seconds(boards, spec, how, number) for number, spec in tqdm(turns, desc=f"{kind}, time")]
    return found


def looking(bench: Bench, sizes: argparse.Namespace) -> Found:
    """Why boards of the chosen `mi-bound` go wrong, and whether the others look like draws from all grids."""
    spec = next(r["settings"]["rule"] for r in generating(bench, sizes)["best"] if report.family(r["settings"]["rule"]) == "mi-bound")
    few, many = make_boards("empty", sizes.drawn), make_boards("empty", sizes.varied)
    studies = {
        "failures": lambda: failure_analysis(bench.model, few, spec, DRAWN),
        "varied": lambda: variety(bench.model, many, spec, DRAWN),
    }
    return {
        name: [bench.ledger.measured(settings_of(bench.model, few, spec, DRAWN) | {"what": name}, study)] for name, study in studies.items()
    }


PARTS = {
    "minimal": lambda bench, sizes: {"grid": tuned(bench, sizes), "best": solving(bench, sizes, "minimal", sizes.minimal)},
    "puzzles": lambda bench, sizes: {"best": solving(bench, sizes, "puzzles", sizes.puzzles)},
    "generating": generating,
    "table 1": table_1,
    "timing": timing,
    "looking": looking,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, help="measure these parts and write no page")
    parser.add_argument("--without", nargs="+", choices=("table 1", "looking"), default=(), help="a page without these parts")
    parser.add_argument("--model", default="sudoku")
    parser.add_argument("--precision", default="bfloat16", choices=("float32", "bfloat16"), help="of the matrix products")
    parser.add_argument("--validation", type=int, default=100, help="minimal puzzles to choose settings on")
    parser.add_argument("--slack", type=float, default=1.0, help="points that a chosen setting may lose there")
    parser.add_argument("--drawn-validation", type=int, default=100, help="empty boards to choose settings on")
    parser.add_argument("--drafted", type=int, default=100, help="of these, to choose verified drafts on")
    parser.add_argument("--test", type=int, default=1000, help="puzzles of each kind that are solved sequentially")
    parser.add_argument("--puzzles", type=int, default=1000, help="of these, with 27.1 givens, by the other rules")
    parser.add_argument("--minimal", type=int, default=1000, help="of these, minimal, by the other rules")
    parser.add_argument("--table", type=int, default=1000, help="puzzles for the paper's settings")
    parser.add_argument("--drawn", type=int, default=1000, help="empty boards")
    parser.add_argument("--verified", type=int, default=1000, help="empty boards for verified drafts; 0 = none")
    parser.add_argument("--varied", type=int, default=450, help="boards whose diversity is looked at")
    parser.add_argument("--timed", type=int, default=32, help="boards to measure times on")
    parser.add_argument("--rounds", type=int, default=3, help="of measuring times")
    parser.add_argument("--records", type=Path, help="default: experiments/records/results-PRECISION.jsonl")
    parser.add_argument("--out", type=Path, default=Path("docs/results.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    records = options.records or Path("experiments/records") / f"results-{options.precision}.jsonl"
    bench = Bench(load(options.model, precision=options.precision), Ledger(records))
    found = {name: PARTS[name](bench, options) for name in options.only or PARTS if name not in options.without}
    if not options.only:
        text = page(found, bench.model, options, options.out.parent / "figures")
        options.out.write_text(text)
        print(text)


if __name__ == "__main__":
    main()
