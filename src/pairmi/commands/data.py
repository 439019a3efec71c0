"""`pairmi data`."""

import argparse

from pairmi.types import PairmiError


def run(options: argparse.Namespace) -> None:
    """`pairmi data`."""
    from pairmi.tasks.sudoku.formats import to_text
    from pairmi.tasks.sudoku.puzzles import unique_puzzles
    from pairmi.tasks.sudoku.solver import difficulty

    low, _, high = options.givens.partition("-")
    if not low.isdigit() or (high and not high.isdigit()):
        raise PairmiError(f"--givens {options.givens}: expected a number such as 27 or a range such as 25-29")
    if options.csv:
        print("puzzle,solution,givens,difficulty")
    for number in range(options.count):
        made = unique_puzzles(1, options.seed * 1_000_003 + number, (int(low), int(high or low)))
        puzzle = to_text(made.canvases[0])
        extra = f",{to_text(made.solutions[0])},{int(made.givens[0])},{difficulty(made.canvases[0].numpy())}"
        print(puzzle + (extra if options.csv else ""))
