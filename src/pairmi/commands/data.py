"""`pairmi data`."""

import argparse
import re

from pairmi.types import PairmiError


def whole_range(name: str, text: str, example: str) -> tuple[int, int]:
    """Both ends of "25-29", or of "27"."""
    found = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", text, re.ASCII)
    low, high = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if low > high or not low:
        raise PairmiError(f"{name} {text}: expected a number, or a range such as {example}")
    return low, high


def run(options: argparse.Namespace) -> None:
    """`pairmi data`."""
    givens = whole_range("--givens", options.givens, "25-29")
    from pairmi.tasks.sudoku.formats import to_text
    from pairmi.tasks.sudoku.puzzles import unique_puzzles
    from pairmi.tasks.sudoku.solver import difficulty

    if options.csv:
        print("puzzle,solution,givens,difficulty")
    for number in range(options.count):
        made = unique_puzzles(1, (options.seed * 1_000_003 + number) % 2**63, givens)
        extra = f",{to_text(made.solutions[0])},{int(made.givens[0])},{difficulty(made.canvases[0].numpy())}"
        print(to_text(made.canvases[0]) + (extra if options.csv else ""))
