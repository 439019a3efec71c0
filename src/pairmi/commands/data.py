"""`pairmi data`."""

import argparse

from pairmi.types import PairmiError


def run(options: argparse.Namespace) -> None:
    """`pairmi data`."""
    from pairmi.tasks.sudoku.formats import to_text
    from pairmi.tasks.sudoku.puzzles import Puzzles, minimal_puzzles, unique_puzzles
    from pairmi.tasks.sudoku.solver import difficulty
    from pairmi.tasks.sudoku.techniques import Technique

    low, _, high = options.givens.partition("-")
    if not low.isdigit() or (high and not high.isdigit()):
        raise PairmiError(f"--givens {options.givens}: expected a number such as 27 or a range such as 25-29")
    if options.csv:
        print("puzzle,solution,givens,difficulty,technique")

    def show(made: Puzzles) -> None:
        for canvas, solution, givens, grade in zip(made.canvases, made.solutions, made.givens, made.grades, strict=True):
            extra = f",{to_text(solution)},{int(givens)},{difficulty(canvas.numpy())},{Technique(int(grade))}"
            print(to_text(canvas) + (extra if options.csv else ""))

    if options.minimal:
        show(minimal_puzzles(options.count, options.seed))
        return
    for number in range(options.count):
        show(unique_puzzles(1, options.seed * 1_000_003 + number, (int(low), int(high or low))))
