"""A backtracking Sudoku solver on bit masks: fills, counts solutions, and says how much it had to search."""

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from pairmi.optional import needed

needed("numba", "Sudoku puzzles", "'pairmi[sudoku]'")
from numba import njit as njit  # noqa: E402 (typed as it is; its absence has a remedy)

Grid = Int[ndarray, " 81"]  # 0..8, and 9 for an empty cell, as the tokens of the model
Grids = Int[ndarray, "N 81"]

EMPTY = 9
ALL = (1 << 9) - 1
SIZES = np.array([mask.bit_count() for mask in range(ALL + 1)])  # how many symbols are in a mask
LINES = np.array([(cell // 9, 9 + cell % 9, 18 + cell // 27 * 3 + cell % 9 // 3) for cell in range(81)])  # row, column and box of a cell
ORDER = np.tile(np.arange(9), (81, 1))  # in which symbols are tried in each cell


@njit(cache=True)
def _candidates(cell: int, used: ndarray) -> int:
    free: int = ALL & ~(used[LINES[cell, 0]] | used[LINES[cell, 1]] | used[LINES[cell, 2]])
    return free


@njit(cache=True)
def _mark(cell: int, symbol: int, used: ndarray) -> None:
    for number in range(3):
        used[LINES[cell, number]] ^= 1 << symbol


@njit(cache=True)
def _tightest(grid: ndarray, used: ndarray) -> tuple[int, int]:
    """The empty cell with the fewest candidates and these; -1 when the grid is full."""
    best, best_mask, fewest = -1, 0, 10
    for cell in range(81):
        if grid[cell] == EMPTY:
            mask = _candidates(cell, used)
            if SIZES[mask] < fewest:
                best, best_mask, fewest = cell, mask, SIZES[mask]
                if fewest <= 1:
                    break
    return best, best_mask


@njit(cache=True)
def _search(puzzle: ndarray, limit: int, order: ndarray, most: int = 1 << 62) -> tuple[int, int, ndarray]:
    """Solutions up to `limit`, symbols tried (at most `most`), the first solution. Symbols are tried in `order[cell]`.

    An iterative depth-first search; every visit takes the cell with the fewest candidates.
    """
    grid, first, used = puzzle.copy(), puzzle.copy(), np.zeros(27, np.int64)
    for cell in range(81):
        if grid[cell] != EMPTY:
            if not _candidates(cell, used) & 1 << grid[cell]:
                return 0, 0, first
            _mark(cell, grid[cell], used)
    cells, left = np.zeros(82, np.int64), np.zeros(82, np.int64)
    depth, found, nodes = 0, 0, 0
    cells[0], left[0] = _tightest(grid, used)
    while depth >= 0 and nodes < most and found < limit:
        cell = cells[depth]
        if cell < 0:
            found += 1
            if found == 1:
                first[:] = grid
        elif grid[cell] != EMPTY:
            _mark(cell, grid[cell], used)
            grid[cell] = EMPTY
        if cell < 0 or left[depth] == 0:
            depth -= 1
            continue
        rank = 0
        while not left[depth] & 1 << order[cell, rank]:
            rank += 1
        grid[cell] = order[cell, rank]
        left[depth] ^= 1 << grid[cell]
        _mark(cell, grid[cell], used)
        nodes += 1
        depth += 1
        cells[depth], left[depth] = _tightest(grid, used)
    return found, nodes, first


@njit(cache=True)
def random_grids(count: int, seed: int) -> Grids:
    """Complete valid grids by randomised search: every grid can come, not all equally often."""
    np.random.seed(seed)
    out = np.empty((count, 81), np.int64)
    order = ORDER.copy()
    for n in range(count):
        for cell in range(81):
            np.random.shuffle(order[cell])
        out[n] = _search(np.full(81, EMPTY), 1, order)[2]
    return out


@njit(cache=True)
def dig(solution: Grid, givens: int, seed: int) -> Grid:
    """A puzzle whose only solution is `solution`, with `givens` cells left or as few as this order of digging reaches.

    With 0 it is minimal: what could not be dug when its turn came cannot be dug when less is given.
    """
    np.random.seed(seed)
    puzzle, left, order = solution.copy(), 81, ORDER.copy()
    for cell in np.random.permutation(81):
        if left == givens:
            break
        symbol = puzzle[cell]
        puzzle[cell] = EMPTY
        if _search(puzzle, 2, order)[0] == 1:
            left -= 1
        else:
            puzzle[cell] = symbol
    return puzzle


def solve(puzzle: Grid) -> tuple[Grid | None, int]:
    """The first solution, or None, and the number of symbols tried on the way to it."""
    found, nodes, first = _search(puzzle, 1, ORDER)
    return (first if found else None), nodes


def count_solutions(puzzle: Grid, limit: int = 2) -> int:
    """How many solutions there are, counted up to `limit`."""
    return int(_search(puzzle, limit, ORDER)[0])


def only_solution(puzzle: Grid, most: int) -> Grid | None:
    """The solution, where trying at most `most` symbols proves that there is just one; else None."""
    found, nodes, first = _search(puzzle, 2, ORDER, most)
    return first if found == 1 and nodes < most else None


def difficulty(puzzle: Grid) -> int:
    """Symbols tried, beyond one for each empty cell, until the search has proved the solution unique: 0 = never guessed wrong."""
    _, nodes, _ = _search(puzzle, 2, ORDER)
    return int(nodes - (puzzle == EMPTY).sum())
