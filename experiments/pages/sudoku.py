"""The page that `sudoku_results.py` makes of its measurements."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from pairmi.backbones.identity import identify
from pairmi.bench import report
from pairmi.bench.stats import Interval, paired_difference, resamples
from pairmi.model import Model
from pairmi.provenance import provenance
from pairmi.spec import looks_at_pairs
from studies import frontiers
from studies.board_grid import TABLE_1

PAPER = dict(zip(TABLE_1, ((53.9, 61.6), (14.9, 52.4), (9.0, 36.8), (15.3, 61.0), (9.9, 51.2), (15.2, 63.6), (9.7, 56.2)), strict=True))
COLUMNS = ("rule", "boards", "quality", "against", "passes", "rows")
VERIFIED = (*COLUMNS, "accepted")
Record = dict[str, Any]
Found = dict[str, list[Record]]


def table(records: Sequence[Record], columns: Sequence[str] = COLUMNS, reference: Record | None = None) -> str:
    """Records beside one-by-one decoding of the same boards, or of the first of them."""
    if not records:
        return "None."
    whole = reference or dict(frontiers.reference_among(records))
    same = whole | {"each": {what: values[: records[0]["boards"]] for what, values in whole["each"].items()}}
    return report.table(frontiers.rows_for_people(records, same), columns)


def loses_nothing(record: Record, reference: Record) -> bool:
    """Whether the paired interval of its difference to the reference goes beyond 0, or it is the reference."""
    gap = paired_difference(frontiers.each(record, "good"), frontiers.each(reference, "good"))
    return gap.high > 0 or gap.low == gap.high == 0


def quickest(records: Sequence[Record], pairs: bool) -> Record | None:
    """The fewest passes at no loss, of the rules that look at pairs or of the others."""
    reference = dict(frontiers.reference_among(records))
    own = [r for r in records if looks_at_pairs(r["settings"]["rule"]) == pairs and loses_nothing(r, reference)]
    return min(own, key=lambda record: float(record["passes"])) if own else None


def passes_ratio(ours: Record, theirs: Record) -> Interval:
    """The mean passes of one over those of the other, boards resampled together."""
    some = min(ours["boards"], theirs["boards"])
    first, second = (frontiers.each(record, "passes")[:some] for record in (ours, theirs))
    drawn = resamples(some, 2000, 0)
    low, high = np.quantile(first[drawn].mean(1) / second[drawn].mean(1), (0.025, 0.975))
    return Interval(float(first.mean() / second.mean()), float(low), float(high))


def seconds(times: Sequence[Record], spec: str) -> float:
    """The median CPU time a board."""
    return median(record["seconds"] for record in times if record["settings"]["rule"] == spec)


def headline(what: dict[str, tuple[list[Record], list[Record]]]) -> str:
    """For each kind of boards the quickest rule of both sorts that loses nothing there, and what one costs over the other."""
    lines = []
    for name, (records, times) in what.items():
        ours, theirs = quickest(records, True), quickest(records, False)
        if ours is None or theirs is None:
            lines.append(
                {"boards": name, "looks at pairs": "none without loss" if ours is None else ours["settings"]["rule"]}
                | (
                    {}
                    if theirs is None
                    else {"does not": theirs["settings"]["rule"], "its quality": theirs["quality"], "its passes": theirs["passes"]}
                )
            )
            continue
        rules = [record["settings"]["rule"] for record in (ours, theirs)]
        spent = [seconds(times, spec) for spec in rules]
        lines.append({"boards": name, "looks at pairs": rules[0], "quality": ours["quality"], "passes": ours["passes"], "does not": rules[1], "its quality": theirs["quality"],
                      "its passes": theirs["passes"], "passes: ratio": str(passes_ratio(ours, theirs)), "CPU time: ratio": spent[0] / spent[1]})  # fmt: skip
    return report.table(lines, tuple(max(lines, key=len)))


def paper_table(records: Sequence[Record]) -> str:
    """Theirs and ours, setting by setting."""
    rows = []
    for row in frontiers.rows_for_people(records, frontiers.reference_among(records)):
        passes, solved = PAPER[row["rule"]]
        rows.append({"rule": row["rule"], "paper: passes": passes, "paper: solved": f"{solved} %", "passes": row["passes"], "solved": f"{100 * row['quality']:.1f} %",
                     "against sequential": row["against"]})  # fmt: skip
    return report.table(rows, tuple(rows[0]))


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


def page(found: dict[str, Found], model: Model, sizes: argparse.Namespace, figures: Path) -> str:
    """The whole text."""
    puzzles, minimal, make, times = (found[name] for name in ("puzzles", "minimal", "generating", "timing"))
    grids = {"solving, minimal": minimal["grid"], "generating": make["grid"]}
    drawn = {name: frontiers.panels(records)["plain"] for name, records in grids.items()} | {
        "generating, verified": frontiers.panels(make["drafts"])["verified"]
    }
    report.draw_frontiers(drawn, "passes", "quality", figures / "sudoku_frontiers.png")
    about = ", ".join(f"{key} {value}" for key, value in provenance().items())
    boards = {
        "27.1 givens": (puzzles["best"], times["puzzles"]),
        "minimal": (minimal["best"], times["minimal"]),
        "empty": (make["best"], times["empty"]),
    }
    how = " ".join(
        f"--{name.replace('_', '-')} {getattr(sizes, name)}"
        for name in (
            "validation",
            "drawn_validation",
            "drafted",
            "test",
            "puzzles",
            "minimal",
            "table",
            "drawn",
            "verified",
            "timed",
            "rounds",
        )
    )
    left_out = "".join(f" --without '{name}'" for name in sizes.without)
    return f"""# Sudoku: what dependence buys

Printed by `python experiments/sudoku_results.py {how}{left_out}` ({about}; model `{model.name}`, weights {identify(model)}, matrix products in {sizes.precision}). Quality is the fraction of puzzles filled exactly as their only
solution says, or of boards generated unconditionally that obey the rules. `against` is the paired difference to sequential decoding of the same boards (most confident first), in points, with its 95 % bootstrap interval.
`rows` counts every sequence evaluated, verification included. No rule here probes: MI is the head's. Every rule (and `mi-bound` for each way of charging and of drawing) had three settings on {sizes.validation} minimal validation puzzles or {sizes.drawn_validation} empty boards; the one with the fewest passes that lost at most
{sizes.slack:g} points there is reported on the test boards. Rules that are not in a table had no such setting. The settings are in `experiments/studies/board_grid.py`.

## In short

Of the settings that validation chose, the quickest that loses nothing on the test boards (the interval of `against` goes beyond 0). CPU time is of one thread, {sizes.timed} boards in one batch, the median of {sizes.rounds} rounds in turns, while other work was running on the machine:

{headline(boards)}

![frontiers on the validation boards](figures/sudoku_frontiers.png)

## Solving {sizes.puzzles} puzzles with 27.1 givens, argmax

{table(puzzles["best"])}

## Solving {sizes.minimal} minimal puzzles, argmax

No given can be left out, and of each difficulty (singles, locked candidates, subsets, beyond) there are as many as of another: [the model on them](sudoku-model.md).
Where `against` lies below 0, the validation puzzles were too few to see the loss.

{table(minimal["best"])}

{theirs(found["table 1"]["table"]) if "table 1" in found else ""}
## Generating {sizes.drawn} boards unconditionally, temperature 1

{table(make["best"])}

{verified(make, sizes)}
What chose them, on {sizes.drawn_validation} validation boards (these three settings of each way of `mi-bound` were picked after some more had been tried on the same boards, which the records hold; `eb` takes 48 to 49 passes at any budget that is near valid):

{table(make["grid"])}

Drafts under verification, on the first {sizes.drafted} of them:

{table(make["drafts"], VERIFIED, make["grid"][0])}

## Where it fails

* **Uncertainty that is the model's own.** A puzzle with one solution has no true entropy: what the model is unsure of, it does not know, and no order of filling tells it. So MI saves little of the passes of a confidence rule there.
* **Synergy.** Pairs do not see what only three positions share (`pairmi bench exact --worlds xor`): why `mi-bound` generates with a penalty of 4.
{failing(found["looking"]) if "looking" in found else ""}"""


def verified(make: Found, sizes: argparse.Namespace) -> str:
    """The drafts on test boards, if they were tried there."""
    if not make["verified"]:
        return ""
    return f"""Verified drafts on {sizes.verified} of these boards, each symbol distributed as sequential decoding in the rule's own order would draw it:

{table(make["verified"], VERIFIED, make["best"][0])}
"""


def theirs(records: list[Record]) -> str:
    """The paper's settings beside its own figures."""
    return f"""## The paper's table 1, on the first {records[0]["boards"]} minimal puzzles

Left the paper's figures (its own model of 4.16 M parameters, its own "hard" puzzles), right the same settings of ours on one frozen model.

{paper_table(records)}
"""


def failing(found: Found) -> str:
    """What decides boards that come out wrong, and how the others look."""
    varied = [{"rule": record["settings"]["rule"]} | record for record in found["varied"]]
    return f"""* **What decides a generated board that comes out wrong**: the pass after which nothing completes it (found by a solver). One cell of the pass may be enough: then the model gave a chance to a digit that has none. Or it takes several,
  filled together: then the rule with exact MI (full probe) would have filled them together too (its budget, or what pairs do not see), or it would not: the head's error.

{kinds_of_failure(found["failures"])}

An overconfident model: {example(found["failures"], "one")}

The head's error: {example(found["failures"], "saved")}

The valid boards: how many differ, and the worst of 81 cells and some pairs by chi-square against uniform sampling of grids (p corrected; empty where fewer than 400 are valid).

{report.table(varied, ("rule", "boards", "valid", "distinct", "worst", "p"))}
"""
