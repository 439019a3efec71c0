"""The deductions against a plain reference: sets of digits, each technique written as people describe it."""

from itertools import combinations

import numpy as np
import pytest

from pairmi.tasks.sudoku.puzzles import minimal_puzzles
from pairmi.tasks.sudoku.rules import units
from pairmi.tasks.sudoku.solver import EMPTY, Grid, dig, random_grids, solve
from pairmi.tasks.sudoku.techniques import UNITS as LISTED
from pairmi.tasks.sudoku.techniques import Technique, deduce, technique

UNITS = [set(unit) for unit in units().tolist()]
BLANK = np.full(81, EMPTY)


def grid(text: str) -> Grid:
    return np.array([EMPTY if letter in ".0" else int(letter) - 1 for letter in text])


def plainly_deduced(puzzle: Grid, most: int) -> list[set[int]]:
    """The candidates that are left when techniques up to number `most` find nothing more."""
    left = [set(range(9)) if symbol == EMPTY else {int(symbol)} for symbol in puzzle]
    before = None
    while before != (before := sum(map(len, left))):
        for unit in UNITS:
            for cell in unit:
                if len(left[cell]) == 1:
                    for other in unit - {cell}:
                        left[other] -= left[cell]
            for digit in range(9):
                places = [cell for cell in unit if digit in left[cell]]
                if len(places) == 1:
                    left[places[0]] = {digit}
                for other in UNITS if most >= 1 else ():
                    if places and unit != other and set(places) <= other:
                        for cell in other - unit:
                            left[cell].discard(digit)
            for size in (2, 3, 4) if most >= 2 else ():
                for cells in combinations(sorted(unit), size):
                    digits = set[int]().union(*(left[cell] for cell in cells))
                    if len(digits) == size:
                        for cell in unit.difference(cells):
                            left[cell] -= digits
                for digits_ in combinations(range(9), size):
                    places_ = {cell for cell in unit if left[cell] & set(digits_)}
                    if len(places_) == size:
                        for cell in places_:
                            left[cell] &= set(digits_)
    return left


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("530070000600195000098000060800060003400803001700020006060000280000419005000080079", Technique.SINGLES),  # Wikipedia's example
        ("8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4..", Technique.BEYOND),  # Arto Inkala, 2012
        ("98.7.....6.....97.....6.5..4....3.2...78...9......1....4....3.2..97...8......1...", Technique.BEYOND),
    ],
)
def test_known_puzzles_need_what_people_say(text: str, expected: Technique) -> None:
    assert technique(grid(text)) is expected


def test_candidates_and_grades_are_those_of_the_plain_reference() -> None:
    puzzles = minimal_puzzles(24, 5)
    assert puzzles.grades.tolist() == [0, 1, 2, 3] * 6
    for canvas, grade in zip(puzzles.canvases.numpy(), puzzles.grades.tolist(), strict=True):
        solved = []
        for most in (Technique.SINGLES, Technique.LOCKED, Technique.SUBSETS):
            plain = plainly_deduced(canvas, most)
            candidates, found = deduce(canvas, most)
            assert [sum(1 << digit for digit in digits) for digits in plain] == candidates.tolist()
            solved.append(all(len(digits) == 1 for digits in plain))
            assert (found is not Technique.BEYOND) == solved[-1]
        assert grade == [*solved, True].index(True)


def test_no_true_digit_is_ever_removed() -> None:
    for number, solution in enumerate(random_grids(300, 17)):
        candidates, needed = deduce(dig(solution, 0, number))
        assert (candidates >> solution & 1).all()
        assert needed is Technique.BEYOND or (candidates == 1 << solution).all()


def test_what_cannot_be_deduced_is_beyond() -> None:
    assert technique(BLANK) is Technique.BEYOND
    twice = BLANK.copy()
    twice[:2] = 4  # two fives in a row
    assert technique(twice) is Technique.BEYOND
    full = solve(BLANK)[0]
    assert full is not None
    assert technique(full) is Technique.SINGLES


def test_the_units_are_those_of_the_rules() -> None:
    assert (units().numpy() == LISTED).all()


def test_techniques_have_names_and_an_order() -> None:
    assert [str(one) for one in Technique] == ["singles", "locked", "subsets", "beyond"]
    assert Technique.SINGLES < Technique.LOCKED < Technique.SUBSETS < Technique.BEYOND
