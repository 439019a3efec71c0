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
    if options.minimal and options.givens is not None:
        raise PairmiError(f"--givens {options.givens}: minimal puzzles have 22-28 givens of their own; leave out --givens or --minimal")
    givens = whole_range("--givens", "27" if options.givens is None else options.givens, "25-29")
    from pairmi.tasks.sudoku.puzzles import Puzzles, minimal_puzzles, unique_puzzles
    from pairmi.tasks.sudoku.rules import to_text
    from pairmi.tasks.sudoku.solver import difficulty
    from pairmi.tasks.sudoku.techniques import Technique

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
        show(unique_puzzles(1, (options.seed * 1_000_003 + number) % 2**63, givens))
