"""What dependence buys on 9x9 Sudoku: the paper's table 1, frontiers of all rules, generation, verified decoding. Results go to docs/results.md.

    python experiments/sudoku_results.py [--only PART]

Settings are chosen on validation boards and reported on test boards. Every measurement is kept in --records, one file a part, so that an
interrupted run goes on where it stopped; parts may be measured by processes side by side (--only), but for `timing`, which needs the
machine for itself; a run without --only then writes the page.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from tqdm import tqdm

from pages.sudoku import Record, page
from pairmi.bench import frontiers, report, sudoku
from pairmi.bench.boards import Boards, make_boards
from pairmi.bench.ledger import Ledger
from pairmi.commit import Sampling
from pairmi.loading import load
from pairmi.model import Model
from studies.board_grid import TABLE_1, board_settings
from studies.failure_analysis import failure_analysis
from studies.uniformity import variety

DRAFTS = (
    "threshold:threshold=0.9",
    "top-k:k=8",
    "eb:budget=0.5",
    "mi-guided:budget=0.6",
    "mi-bound:budget=0.3",
    "mi-bound:budget=0.3,entropy_weight=0.1",
    "mi-bound:budget=0.5,entropy_weight=0.1",
    "mi-bound:budget=0.3,entropy_weight=0.3",
    "mi-bound:budget=1.0,entropy_weight=0.3",
)  # what is drafted under verification
BOLD = "mi-bound:budget=0.3,penalty=4"  # whose mistakes are looked at beside those of the setting that was chosen
GREEDY, DRAWN = Sampling(greedy=True), Sampling()
ESTIMATES = ("probe", "head", "shuffled", "structural", "attention")


@dataclass(frozen=True)
class Bench:
    """A model, and where its measurements are kept."""

    model: Model
    ledger: Ledger

    def run(self, what: str, boards: Boards, specs: Sequence[str], how: Sampling, batch: int = 128, verify: bool = False) -> list[Record]:
        """Every rule, one-by-one decoding first."""
        ways = frontiers.sweep(self.model, boards, list(dict.fromkeys(specs)), how, self.ledger, batch, (verify,))
        return list(tqdm(ways, total=len(set(specs)), desc=what))

    def failures(self, boards: Boards, spec: str) -> Record:
        """Why boards went wrong."""
        settings = sudoku.settings_of(self.model, boards, spec, DRAWN) | {"what": "failure analysis"}
        return self.ledger.measured(settings, lambda: failure_analysis(self.model, boards, spec, DRAWN))

    def variety(self, boards: Boards, spec: str, how: Sampling) -> Record:
        """How much the generated boards differ, and from uniform sampling."""
        settings = sudoku.settings_of(self.model, boards, spec, how) | {"what": "variety"}
        return self.ledger.measured(settings, lambda: variety(self.model, boards, spec, how))


def chosen(records: list[Record], slack: float) -> list[str]:
    """Of each rule the setting with the fewest passes that loses at most `slack` points on these (validation) boards."""
    best = frontiers.loss_free(records, frontiers.reference_among(records), slack)
    return ["sequential", *(record["settings"]["rule"] for record in best if record["settings"]["rule"] != "sequential")]


def promising(records: list[Record], slack: float, most: int) -> list[str]:
    """Of each rule up to `most` settings that lose at most `slack` points, those with the fewest passes."""
    reference, by_rule = frontiers.reference_among(records), dict[str, list[str]]()
    for record in sorted(records, key=lambda record: float(record["passes"])):
        if 100 * record["quality"] >= 100 * reference["quality"] - slack:
            by_rule.setdefault(report.family(record["settings"]["rule"]), []).append(record["settings"]["rule"])
    return list(dict.fromkeys(["sequential", *(spec for specs in by_rule.values() for spec in specs[:most])]))


def singly(specs: Sequence[str]) -> list[str]:
    """One by one, in the order of each rule: what its verified drafts stand beside."""
    return [f"{spec},commit=one" for spec in specs]


def tuned(bench: Bench, sizes: argparse.Namespace) -> list[Record]:
    tune = make_boards("puzzles", sizes.validation, "validation")
    return bench.run("solve, tuning", tune, ["sequential", *TABLE_1, *board_settings()], GREEDY)


def solving(bench: Bench, sizes: argparse.Namespace) -> dict[str, list[Record]]:
    test, half = make_boards("puzzles", sizes.test, "test"), make_boards("puzzles", sizes.validation // 2, "validation")
    grid = tuned(bench, sizes)
    drafts = bench.run("solve, tuning verified", half, DRAFTS, GREEDY, verify=True)
    own = bench.run("solve, in the drafts' own orders", half, singly(DRAFTS), GREEDY)
    return {
        "table": bench.run("table 1", test, TABLE_1, GREEDY),
        "drawn": bench.run("table 1, drawn", test, TABLE_1, DRAWN),
        "grid": grid,
        "best": bench.run("solve, best", test, chosen(grid, 0.5), GREEDY),
        "drafts": drafts,
        "own": own,
        "single": bench.run("solve, batch 1", replace_boards(test, 50), chosen(grid, 0.5), GREEDY, batch=1),
    }


def generating(bench: Bench, sizes: argparse.Namespace) -> dict[str, list[Record]]:
    tune, test = make_boards("empty", sizes.drawn_validation, "validation"), make_boards("empty", sizes.drawn_test, "test")
    grid = bench.run("generate, tuning", tune, ["sequential", *board_settings()], replace(DRAWN, seed=1))
    drafts = bench.run("generate, tuning verified", tune, DRAFTS, replace(DRAWN, seed=1), verify=True)
    own = bench.run("generate, in the drafts' own orders", tune, singly(DRAFTS), replace(DRAWN, seed=1))
    many = make_boards("empty", sizes.drawn_second, "validation")  # the best of many settings on few boards is partly luck
    second = bench.run("generate, the promising", many, promising(grid, 6.0, 2), replace(DRAWN, seed=2))
    drafted = promising([grid[0], *drafts], 3.0, 2)[1:]
    checked = bench.run("generate, the promising drafts", many, drafted, replace(DRAWN, seed=2), verify=True)
    best, safe = chosen(second, 3.0), chosen([second[0], *checked], 3.0)[1:]  # the standard error of so many boards is 2 points
    some = [spec for spec in best if report.family(spec) in ("sequential", "eb", "mi-bound", "mi-guided")]
    return {
        "grid": grid,
        "drafts": drafts,
        "own": own,
        "second": second,
        "best": bench.run("generate, best", test, best, DRAWN),
        "checked": checked,
        "verified": bench.run("generate, verified", test, safe or DRAFTS[-1:], DRAWN, verify=True),
        "verified own": bench.run("generate, in their own orders", test, singly(safe or DRAFTS[-1:]), DRAWN),
        "alone": bench.run("generate, verified, batch 1", replace_boards(test, 12), safe or DRAFTS[-1:], DRAWN, batch=1, verify=True),
        "varied": [bench.variety(make_boards("empty", sizes.varied), "sequential", DRAWN)]
        + [bench.variety(make_boards("empty", sizes.varied), spec, replace(DRAWN, verify=True)) for spec in safe[:1]],
        "cooler": bench.run("generate, temperature 0.7", replace_boards(test, sizes.drawn_test // 4), some, Sampling(temperature=0.7)),
        "coolest": bench.run("generate, temperature 0.5", replace_boards(test, sizes.drawn_test // 4), some, Sampling(temperature=0.5)),
        "open": bench.run("generate, 12 givens", make_boards("open", sizes.drawn_test // 4), best, DRAWN),
        "failures": [bench.failures(test, spec) for spec in best if spec.startswith("mi-bound")]
        + [bench.failures(replace_boards(test, sizes.drawn_test // 4), BOLD)],
    }


def estimating(bench: Bench, sizes: argparse.Namespace) -> dict[str, list[Record]]:
    """Solving with every estimate; generating with all but the probe, which would cost thousands of rows a board."""
    guided = [f"mi-guided:budget={budget},mi={mi}" for budget in (0.1, 0.3) for mi in ESTIMATES]
    bound = [f"mi-bound:budget=0.05,penalty=8,mi={mi}" for mi in ESTIMATES if mi != "probe"]
    return {
        "solve": bench.run("estimates, solving", make_boards("puzzles", sizes.probed, "test"), ["sequential", *guided], GREEDY),
        "generate": bench.run("estimates, generating", make_boards("empty", sizes.probed, "test"), ["sequential", *bound], DRAWN),
    }


def timing(bench: Bench, sizes: argparse.Namespace) -> dict[str, list[Record]]:
    """One by one and what validation chose, alternately, on a machine with nothing else to do."""
    boards, rounds = make_boards("puzzles", sizes.timed, "test"), []
    specs = chosen(tuned(replace(bench, ledger=Ledger(sizes.records / "solving.jsonl")), sizes), 0.5)
    for number in range(sizes.rounds):
        for spec in tqdm(specs, desc=f"time, round {number + 1}"):
            settings = sudoku.settings_of(bench.model, boards, spec, GREEDY) | {"round": number}
            rounds.append(bench.ledger.measured(settings, lambda: sudoku.measure(bench.model, boards, spec, GREEDY)))  # noqa: B023 (called at once)
    return {"rounds": rounds}


def replace_boards(boards: Boards, count: int) -> Boards:
    """The first of them."""
    return make_boards(boards.kind, count, boards.split)  # type: ignore[arg-type]


PARTS = {"solving": solving, "generating": generating, "estimating": estimating, "timing": timing}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, help="measure this part and write no page")
    parser.add_argument("--model", default="sudoku")
    parser.add_argument("--validation", type=int, default=256, help="puzzles to choose settings on")
    parser.add_argument("--test", type=int, default=1000, help="puzzles")
    parser.add_argument("--drawn-validation", type=int, default=64, help="boards from nothing to choose settings on")
    parser.add_argument("--drawn-second", type=int, default=256, help="others, for the settings that look promising")
    parser.add_argument("--drawn-test", type=int, default=500, help="boards from nothing")
    parser.add_argument("--varied", type=int, default=450, help="boards whose diversity is looked at")
    parser.add_argument("--timed", type=int, default=128, help="puzzles to measure times on")
    parser.add_argument("--rounds", type=int, default=3, help="of measuring times")
    parser.add_argument("--probed", type=int, default=64, help="boards for the comparison of estimates")
    parser.add_argument("--records", type=Path, default=Path("runs/results"), help="folder")
    parser.add_argument("--out", type=Path, default=Path("docs/results.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    for name in [options.only] if options.only else PARTS:
        model = load(options.model, attention=name == "estimating")
        found[name] = PARTS[name](Bench(model, Ledger(options.records / f"{name}.jsonl")), options)
    if options.only is None:
        text = page(*(found[name] for name in PARTS), model, options, options.out.parent / "figures")
        options.out.write_text(text)
        print(text)


if __name__ == "__main__":
    main()
