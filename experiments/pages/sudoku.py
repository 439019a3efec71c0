"""The page that `sudoku_results.py` makes of its measurements."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from pairmi.backbones.identity import identify
from pairmi.bench import frontiers, report
from pairmi.bench.boards import make_boards
from pairmi.bench.stats import Interval
from pairmi.model import Model
from pairmi.provenance import provenance
from pairmi.spec import looks_at_pairs
from studies.board_grid import TABLE_1, board_settings
from studies.frontier_costs import compare
from studies.sudoku_beliefs import histogram

PAPER = dict(zip(TABLE_1, ((53.9, 61.6), (14.9, 52.4), (9.0, 36.8), (15.3, 61.0), (9.9, 51.2), (15.2, 63.6), (9.7, 56.2)), strict=True))
Record = dict[str, Any]
Found = dict[str, list[Record]]


def parted(records: list[Record]) -> tuple[list[Record], list[Record]]:
    """Those of rules that look at pairs, and the others."""
    ours, theirs = ([r for r in records if looks_at_pairs(r["settings"]["rule"]) == pairs] for pairs in (True, False))
    return ours, theirs


def quickest(records: list[Record]) -> Record:
    return min(records, key=lambda record: float(record["passes"]))


def table(records: list[Record], columns: Sequence[str] = frontiers.COLUMNS) -> str:
    return report.table(frontiers.rows_for_people(records, frontiers.reference_among(records)), columns)


def verified_table(drafts: list[Record], plain: list[Record], own: Sequence[Record] = ()) -> str:
    """Verified drafts beside plain one-by-one decoding of the same boards, most confident first and in the rule's own order."""
    count = drafts[0]["boards"]
    whole = frontiers.reference_among(plain)
    reference = whole | {"each": {what: values[:count] for what, values in whole["each"].items()}}
    rows, columns = (
        frontiers.rows_for_people(drafts, reference),
        ("rule", "boards", "quality", "against", "passes", "rows", "accepted", "ms"),
    )
    if not own:
        return report.table(rows, columns)
    for row, draft, alone in zip(rows, drafts, own, strict=True):
        gap = frontiers.rows_for_people([draft], alone)[0]["against"]
        row |= {"own order": alone["quality"], "against own": gap}
    return report.table(rows, (*columns[:4], "own order", "against own", *columns[4:]))


def kinds_of_failure(records: Sequence[Record]) -> str:
    """How many boards went wrong in which way."""
    rows = [{"rule": r["settings"]["rule"], "boards": r["boards"], "wrong": r["wrong"], "one cell": r["one"],
             "several, exact MI too": r["not_saved"], "several, exact MI not": r["saved"], "of the several: three or more": r["three"]} for r in records]  # fmt: skip
    return report.table(rows, tuple(rows[0]))


def example(records: Sequence[Record], kind: str) -> str:
    """The plainest case of an overconfident model (`one`), or of the head's error (`saved`): a board that still had a solution."""
    failures = [(failure, record["settings"]["rule"]) for record in records for failure in record["each"]]
    if kind == "one":
        found = [(failure["probability"], failure, rule) for failure, rule in failures if len(failure["cells"]) == 1]
    else:
        found = [
            (failure["exact"] - failure["predicted"], failure, rule) for failure, rule in failures if failure["saved"] and failure["cells"]
        ]
    if not found:
        return "There is none among these boards."
    _, failure, rule = max(found, key=lambda case: float(case[0]))
    cells = " and ".join(f"{digit} in {cell}" for cell, digit in zip(failure["cells"], failure["digits"], strict=True))
    said = (
        f"The model gave it {failure['probability']:.3f}."
        if kind == "one"
        else f"The head said that the two cells share {failure['predicted']:.3f} nats; they share {failure['exact']:.3f}."
    )
    board = "\n".join("    " + failure["canvas"][start : start + 9] for start in range(0, 81, 9))
    return f"`{rule}` wrote {cells}, and nothing completes the board any more. {said}\n\n{board}"


def readable(ratio: Interval) -> str:
    """With words for a quality that is never reached."""
    value, low, high = (f"{x:.2f}" if x < 1e8 else "never" for x in (ratio.value, ratio.low, ratio.high))
    return value if value == low == high else f"{value} [{low}, {high}]"


def duel(records: list[Record], slack: float) -> str:
    """The best rules that look at pairs against the best that do not, at equal quality."""
    reference = frontiers.reference_among(records)
    ours, theirs = parted(records)
    lines = []
    for name in dict.fromkeys(report.family(record["settings"]["rule"]) for record in ours):
        own = [record for record in ours if report.family(record["settings"]["rule"]) == name]
        passes, rows = (compare(own, theirs, reference, slack, what) for what in ("passes", "rows"))
        lines.append({"rule": name, "passes over theirs": readable(passes), "rows over theirs": readable(rows)})
    passes = compare(ours, theirs, reference, slack)
    lines.append({"rule": "all that look at pairs", "passes over theirs": readable(passes), "rows over theirs": ""})
    return report.table(lines, ("rule", "passes over theirs", "rows over theirs"))


def named(records: list[Record], rule: str) -> str:
    """The quality of one setting, in percent."""
    return f"{100 * next(record['quality'] for record in records if record['settings']['rule'] == rule):.1f} %"


def paper_table(greedy: list[Record], drawn: list[Record]) -> str:
    rows = []
    for ours, sampled in zip(frontiers.rows_for_people(greedy, greedy[0]), frontiers.rows_for_people(drawn, drawn[0]), strict=True):
        passes, solved = PAPER[ours["rule"]]
        rows.append({"rule": ours["rule"], "paper: passes": passes, "paper: solved": f"{solved} %", "passes": ours["passes"], "solved": f"{100 * ours['quality']:.1f} %",
                     "against one by one": ours["against"], "drawn: passes": sampled["passes"], "drawn: solved": f"{100 * sampled['quality']:.1f} %"})  # fmt: skip
    return report.table(rows, tuple(rows[0]))


def speed_ratio(rounds: list[Record]) -> str:
    """Of every rule the ratios to one-by-one decoding of the same round: their median, and the least and largest."""
    rows = []
    for spec in dict.fromkeys(record["settings"]["rule"] for record in rounds):
        own, reference = ([r for r in rounds if r["settings"]["rule"] == name] for name in (spec, frontiers.REFERENCE))
        passes = reference[0]["passes"] / own[0]["passes"]
        faster = sorted(theirs["seconds_per_board"] / ours["seconds_per_board"] for ours, theirs in zip(own, reference, strict=True))
        share = {name: median(r[f"{name}_seconds"] / r["seconds_per_board"] for r in own) for name in ("mi", "rule", "loop")}
        rows.append({"rule": spec, "boards a second": 1 / median(r["seconds_per_board"] for r in own), "fewer passes": passes,
                     "faster": f"{median(faster):.2f} [{faster[0]:.2f}, {faster[-1]:.2f}]", "faster / fewer": median(faster) / passes,
                     "MI": share["mi"], "rule and loop": share["rule"] + share["loop"]})  # fmt: skip
    return report.table(rows, tuple(rows[0]))


def quicker(drafts: list[Record], plain: list[Record]) -> float:
    """The fewest passes of verified drafts over those of the plain rules that do not look at pairs."""
    return quickest(drafts)["passes"] / quickest(parted(plain)[1])["passes"]


def headline(records: list[Record]) -> str:
    """The chosen settings on the test boards: the quickest that looks at pairs and the quickest that does not."""
    lines = []
    for own, what in zip(parted(records), ("looks at pairs", "does not"), strict=True):
        row = frontiers.rows_for_people([quickest(own)], frontiers.reference_among(records))[0]
        lines.append({"the quickest that": what} | row)
    return report.table(lines, ("the quickest that", "rule", "quality", "against", "passes", "rows"))


def page(solve: Found, make: Found, estimates: Found, times: Found, model: Model, sizes: argparse.Namespace, figures: Path) -> str:
    report.draw_frontiers({"solving": frontiers.panels(solve["grid"])["plain"], "solving, verified": frontiers.panels(solve["drafts"])["verified"],
                           "generating": frontiers.panels(make["grid"])["plain"], "generating, verified": frontiers.panels(make["drafts"])["verified"]},
                          "passes", "quality", figures / "sudoku_frontiers.png")  # fmt: skip
    givens = (make_boards("puzzles", sizes.test).canvases != model.vocab.size).sum(1)
    about = ", ".join(f"{key} {value}" for key, value in provenance().items())
    generated = ("rule", "boards", "valid", "distinct", "worst", "p")
    return f"""# Sudoku: what dependence buys

Printed by `python experiments/sudoku_results.py` ({about}; model `{model.name}`, weights {identify(model)}). Quality is the fraction of puzzles filled exactly as their only
solution says, or of boards from nothing that obey the rules. `against` is the paired difference to one-by-one decoding on the same boards, in
points, with its 95 % bootstrap interval. `rows` counts every sequence evaluated, verification included; what a rule itself spends on probing is `probe_rows`; times are milliseconds a board
on one thread of a machine that was busy with other measurements, so they are rough (but for the table of times). Settings were chosen on validation boards alone: {sizes.validation} puzzles;
{sizes.drawn_validation} boards from nothing for the whole grid and {sizes.drawn_second} others for the promising. They are reported on test boards. The grids are in `experiments/studies/board_grid.py`; mi-bound's was widened while looking at
validation boards (it has {sum("mi-bound" in spec for spec in board_settings())} settings, `eb` 5). Test puzzles: {sizes.test}, each with a proved unique solution, givens {histogram(givens)}.

![frontiers](figures/sudoku_frontiers.png)

## The paper's table 1

Left the paper's figures (its own 4.16 M-parameter model), then ours on one frozen model: argmax, and drawn at temperature 1.

{paper_table(solve["table"], solve["drawn"])}

## Solving: of each rule the fewest passes that lost at most half a point on validation

{table(solve["best"])}

At the quality of one-by-one decoding less one point, on the validation grid, passes over those of the best rule that does not look at pairs:

{duel(solve["grid"], 1.0)}

One board at a time (first 50 test puzzles):

{table(solve["single"], ("rule", "boards", "quality", "passes", "ms", "pass_ms", "mi_ms", "rule_ms", "loop_ms"))}

Time against passes (first {sizes.timed} test puzzles in batches of 128, {sizes.rounds} rounds measured alternately with the machine for itself): how much faster than one by one, and the share of the time
that MI, rule and loop take.

{speed_ratio(times["rounds"])}

Verified drafts (argmax; accepted while the conditional's likeliest symbol has 0.999), on the validation puzzles; `own order` is one-by-one decoding in the order of the rule (`commit=one`), and
`against own` the difference to it. With argmax the two are not the same: verification leaves open what the conditional is not sure of and asks the rule anew, the own order fills all that was chosen.

{verified_table(solve["drafts"], solve["grid"], solve["own"])}

## Generating from nothing, temperature 1

{table(make["best"])}

{headline(make["best"])}

What chose them: of each rule up to two settings that lost at most 6 points on the grid, on {sizes.drawn_second} other validation boards; of these the fewest passes that lose at most three points (the standard error is about two).

{table(make["second"], ("rule", "boards", "quality", "against", "passes", "rows"))}

Diversity of the valid boards, of {sizes.varied}: how many differ, and the worst of {81} cells and some pairs by chi-square against uniform sampling (p corrected).

{report.table([{"rule": r["settings"]["rule"] + " verified" * r["settings"]["sampling"]["verify"]} | r for r in make["varied"]], generated)}

At the validity of one-by-one decoding less one point, on these {sizes.drawn_second} boards, passes over those of the best rule that does not look at pairs:

{duel(make["second"], 1.0)}

Verified drafts, each symbol distributed as one-by-one decoding in the rule's own order would draw it (`own order`: drawn so, 81 passes a board; the two part after a rejected draft, when the rule is asked again):

{verified_table(make["drafts"], make["grid"], make["own"])}

The promising of them on {sizes.drawn_second} other validation boards, and on the test boards those that lost at most three points there:

{verified_table(make["checked"], make["second"])}

{verified_table(make["verified"], make["best"], make["verified own"])}

The quickest of these needs {quicker(make["verified"], make["best"]):.2f} of the passes of the quickest plain rule that does not look at pairs; mind the rows.

One board at a time (first 12):

{verified_table(make["alone"], make["best"])}

At temperature 0.7:

{table(make["cooler"], ("rule", "boards", "quality", "against", "passes", "rows", "ms"))}

At temperature 0.5:

{table(make["coolest"], ("rule", "boards", "quality", "against", "passes", "rows", "ms"))}

From 12 random givens, which leave very many completions:

{table(make["open"], ("rule", "boards", "quality", "against", "passes", "rows", "ms"))}

## What the estimator's error costs: exact MI, head, and controls

Solving:

{table(estimates["solve"], ("rule", "boards", "quality", "against", "passes", "rows", "ms"))}

Generating:

{table(estimates["generate"], ("rule", "boards", "quality", "against", "passes", "rows", "ms"))}

## Where it fails

* **Uncertainty that is the model's own.** A puzzle with one solution has no true entropy: what the model is unsure of, it does not know, and no
  order of filling tells it. A rule that is meant for real uncertainty fills unsure cells because they are independent, and commits mistakes:
  `mi-bound:budget=0.1,penalty=4`, at home when generating, solves {named(solve["grid"], "mi-bound:budget=0.1,penalty=4")} of the validation puzzles, one by one
  {named(solve["grid"], "sequential")}. For puzzles a plain confidence rule is as good as any that looks at pairs.
* **Synergy.** Pairs do not see what only three positions share: `pairmi bench exact --worlds xor`. On these boards it is why the penalty must be above 1: nine cells of a unit share
  more than the sum of their pairs says (`mi-bound:budget=0.1` {named(make["grid"], "mi-bound:budget=0.1")} valid, with `penalty=4`
  {named(make["grid"], "mi-bound:budget=0.1,penalty=4")}).
* **An order that opens unsure cells early** pays for the model's imperfect beliefs even when every draw is exact: verified `mi-bound:budget=0.3` draws each symbol from its
  conditional, and {named(make["drafts"], "mi-bound:budget=0.3")} of its boards are valid, one by one, most confident first, {named(make["grid"], "sequential")}.
* **What decides a board that comes out wrong**: the pass after which nothing completes it (found by a solver). One cell of the pass may be enough: then the model gave a chance to a digit that has none. Or it takes several, filled
  together: then the rule with exact MI (full probe) would have filled them together too (its budget, or what pairs do not see), or it would not: the head's error.

{kinds_of_failure(make["failures"])}

An overconfident model: {example(make["failures"], "one")}

The head's error: {example(make["failures"], "saved")}
"""
