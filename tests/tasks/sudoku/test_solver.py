"""The solver against an independent one: Sudoku as clauses, given to a SAT solver."""

import time
from itertools import combinations

import numpy as np
import pytest
from pysat.solvers import Solver

from pairmi.tasks.sudoku.puzzles import unique_puzzles
from pairmi.tasks.sudoku.rules import units
from pairmi.tasks.sudoku.solver import EMPTY, Grid, count_solutions, difficulty, dig, only_solution, random_grids, solve

# the first of Gordon Royle's 17-clue puzzles, and three that are known to be hard for a search
REAL = [
    "000000010400000000020000000000050407008000300001090000300400200050100000000806000",
    "000000010400000000020000000000050604008000300001090000300400200050100000000807000",
    "000000012000035000000600070700000300000400800100000000000120000080000040050000600",
    "..............3.85..1.2.......5.7.....4...1...9.......5......73..2.1........4...9",
    "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4..",
]
ROYLE = "693784512487512936125963874932651487568247391741398625319475268856129743274836159"


def grid(text: str) -> Grid:
    return np.array([EMPTY if letter in ".0" else int(letter) - 1 for letter in text])


def clauses() -> list[list[int]]:
    """Variable 9 cell + digit + 1: exactly one digit in each cell, and each digit exactly once in each unit."""
    groups = [[9 * cell + digit + 1 for digit in range(9)] for cell in range(81)]
    groups += [[9 * cell + digit + 1 for cell in unit] for unit in units().tolist() for digit in range(9)]
    return groups + [[-a, -b] for group in groups for a, b in combinations(group, 2)]


def sat_solutions(puzzle: Grid, limit: int) -> list[Grid]:
    """Up to `limit` solutions, found by forbidding each one that was found."""
    found: list[Grid] = []
    with Solver("cadical153", bootstrap_with=clauses()) as solver:
        for cell in np.flatnonzero(puzzle != EMPTY):
            solver.add_clause([int(9 * cell + puzzle[cell] + 1)])
        while len(found) < limit and solver.solve():
            true = [variable for variable in solver.get_model() if variable > 0]
            found.append(np.array(true).reshape(81) - 9 * np.arange(81) - 1)
            solver.add_clause([-variable for variable in true])
    return found


def opened(seed: int, cells: int) -> Grid:
    """A random grid with so many random cells emptied, however many solutions that leaves."""
    rng = np.random.default_rng(seed)
    puzzle = random_grids(1, seed)[0]
    puzzle[rng.permutation(81)[:cells]] = EMPTY
    return puzzle


@pytest.mark.parametrize("text", REAL)
def test_real_puzzles_have_the_one_solution_that_sat_finds(text: str) -> None:
    puzzle = grid(text)
    truth = sat_solutions(puzzle, 2)
    solution, tried = solve(puzzle)
    assert len(truth) == 1
    assert count_solutions(puzzle) == 1
    np.testing.assert_array_equal(solution, truth[0])
    assert tried >= (puzzle == EMPTY).sum()


def test_the_published_solution() -> None:
    np.testing.assert_array_equal(solve(grid(REAL[0]))[0], grid(ROYLE))


@pytest.mark.parametrize("givens", [(22, 24), (25, 29), (40, 50)])
def test_generated_puzzles_have_the_one_solution_that_sat_finds(givens: tuple[int, int]) -> None:
    puzzles = unique_puzzles(8, 11, givens)
    for canvas, solution in zip(puzzles.canvases.numpy(), puzzles.solutions.numpy(), strict=True):
        truth = sat_solutions(canvas, 2)
        assert len(truth) == 1
        np.testing.assert_array_equal(truth[0], solution)


@pytest.mark.parametrize("seed", range(12))
def test_solutions_are_counted_up_to_the_limit(seed: int) -> None:
    puzzle = opened(seed, 48 + seed)
    many = len(sat_solutions(puzzle, 30))
    assert count_solutions(puzzle, 30) == many
    assert count_solutions(puzzle) == min(many, 2)
    assert count_solutions(puzzle, 1) == 1


def test_the_counted_puzzles_really_have_several_solutions() -> None:
    counts = {count_solutions(opened(seed, 48 + seed), 30) for seed in range(12)}
    assert len(counts) >= 4
    assert max(counts) == 30


def test_an_empty_board_has_many_solutions() -> None:
    assert count_solutions(np.full(81, EMPTY), 500) == 500


@pytest.mark.parametrize("seed", range(6))
def test_a_wrong_given_leaves_what_sat_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    puzzle = dig(random_grids(1, seed)[0], 30, seed)
    cell = int(rng.choice(np.flatnonzero(puzzle != EMPTY)))
    puzzle[cell] = (puzzle[cell] + 1 + rng.integers(8)) % 9
    assert count_solutions(puzzle, 5) == len(sat_solutions(puzzle, 5))


def test_contradictions_and_dead_ends_have_no_solution() -> None:
    twice = grid("55" + "." * 79)
    dead_end = grid("12345678." + "." * 17 + "9" + "." * 54)  # the 9 that r1c9 needs already stands in its column
    for puzzle in (twice, dead_end):
        assert count_solutions(puzzle) == 0
        assert solve(puzzle)[0] is None
        assert sat_solutions(puzzle, 1) == []


def test_a_full_grid_solves_itself() -> None:
    full = grid(ROYLE)
    solution, tried = solve(full)
    assert (tried, count_solutions(full), difficulty(full)) == (0, 1, 0)
    np.testing.assert_array_equal(solution, full)


def test_the_input_is_left_alone() -> None:
    puzzle = grid(REAL[0])
    before = puzzle.copy()
    solve(puzzle), count_solutions(puzzle), difficulty(puzzle), dig(grid(ROYLE), 30, 0)
    np.testing.assert_array_equal(puzzle, before)


def test_difficulty_is_zero_without_guesses_and_large_for_hard_puzzles() -> None:
    singles = grid(ROYLE)
    singles[:9] = EMPTY  # every cell of the row is decided by its column
    assert difficulty(singles) == 0
    easy = [difficulty(canvas) for canvas in unique_puzzles(20, 5, (45, 50)).canvases.numpy()]
    assert np.median(easy) < 5
    assert all(value >= 0 for value in easy)
    assert min(difficulty(grid(text)) for text in REAL) > 1000


def test_two_thousand_grids_are_valid_distinct_and_fast() -> None:
    random_grids(1, 0)  # compiled
    began = time.perf_counter()
    grids = random_grids(2000, 1)
    seconds = time.perf_counter() - began
    assert seconds < 60 * 2000 / 100_000
    assert (np.sort(grids[:, units().numpy()], axis=2) == np.arange(9)).all()
    assert len(np.unique(grids, axis=0)) == 2000


def test_grids_are_spread_over_the_digits() -> None:
    """Every digit comes equally often in every cell, up to noise."""
    shares = np.stack([(random_grids(3000, 2) == digit).mean(0) for digit in range(9)])
    assert abs(shares - 1 / 9).max() < 0.03


def test_a_seed_says_everything() -> None:
    np.testing.assert_array_equal(random_grids(20, 7), random_grids(20, 7))
    assert (random_grids(20, 7) != random_grids(20, 8)).any(axis=1).all()
    solution = random_grids(1, 3)[0]
    np.testing.assert_array_equal(dig(solution, 28, 5), dig(solution, 28, 5))
    assert (dig(solution, 28, 5) != dig(solution, 28, 6)).any()


@pytest.mark.parametrize("givens", [25, 40, 81])
def test_digging_keeps_the_solution_and_stops_at_the_target(givens: int) -> None:
    for seed, solution in enumerate(random_grids(10, 4)):
        puzzle = dig(solution, givens, seed)
        assert (puzzle != EMPTY).sum() >= givens
        assert count_solutions(puzzle) == 1
        np.testing.assert_array_equal(puzzle[puzzle != EMPTY], solution[puzzle != EMPTY])
    assert (puzzle != EMPTY).sum() == givens


def test_digging_to_the_bottom_leaves_only_needed_givens() -> None:
    solution = random_grids(1, 9)[0]
    puzzle = dig(solution, 0, 1)
    for cell in np.flatnonzero(puzzle != EMPTY):
        without = puzzle.copy()
        without[cell] = EMPTY
        assert count_solutions(without) == 2


def test_the_only_solution_is_found_within_so_many_symbols_or_not_at_all() -> None:
    solution = random_grids(1, 3)[0]
    puzzle = dig(solution, 28, 3)
    assert (only_solution(puzzle, 100_000) == solution).all()
    assert only_solution(puzzle, 10) is None
    assert only_solution(np.full(81, EMPTY), 100_000) is None  # several
    puzzle[puzzle == EMPTY] = solution[0]
    assert only_solution(puzzle, 100_000) is None  # none
