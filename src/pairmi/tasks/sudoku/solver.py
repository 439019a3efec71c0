"""A backtracking Sudoku solver on bit masks: fills, counts solutions, and says how much it had to search."""

import numpy as np
from jaxtyping import Int
from numba import njit
from numpy import ndarray

Grid = Int[ndarray, " 81"]  # 0..8, and 9 for an empty cell, as the tokens of the model
Grids = Int[ndarray, "N 81"]

EMPTY = 9
ALL = (1 << 9) - 1


@njit(cache=True)
def _candidates(cell: int, rows: ndarray, columns: ndarray, boxes: ndarray) -> int:
    row, column = cell // 9, cell % 9
    free: int = ALL & ~(rows[row] | columns[column] | boxes[row // 3 * 3 + column // 3])
    return free


@njit(cache=True)
def _mark(cell: int, bit: int, rows: ndarray, columns: ndarray, boxes: ndarray) -> None:
    row, column = cell // 9, cell % 9
    rows[row] ^= bit
    columns[column] ^= bit
    boxes[row // 3 * 3 + column // 3] ^= bit


@njit(cache=True)
def _bits(mask: int) -> int:
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


@njit(cache=True)
def _tightest(grid: ndarray, rows: ndarray, columns: ndarray, boxes: ndarray) -> tuple[int, int]:
    """The empty cell with the fewest candidates and these; -1 when the grid is full."""
    best, best_mask, fewest = -1, 0, 10
    for cell in range(81):
        if grid[cell] == EMPTY:
            mask = _candidates(cell, rows, columns, boxes)
            count = _bits(mask)
            if count < fewest:
                best, best_mask, fewest = cell, mask, count
                if count <= 1:
                    break
    return best, best_mask


@njit(cache=True)
def _search(grid: ndarray, limit: int, order: ndarray, most: int = 1 << 62) -> tuple[int, int, ndarray]:
    """Solutions up to `limit`, symbols tried (at most `most`), the first solution. Symbols are tried in `order[cell]`.

    An iterative depth-first search; every visit takes the cell with the fewest candidates.
    """
    grid = grid.copy()
    first = grid.copy()
    rows, columns, boxes = np.zeros(9, np.int64), np.zeros(9, np.int64), np.zeros(9, np.int64)
    for cell in range(81):
        if grid[cell] != EMPTY:
            bit = 1 << grid[cell]
            if not _candidates(cell, rows, columns, boxes) & bit:
                return 0, 0, first
            _mark(cell, bit, rows, columns, boxes)
    cells, left = np.zeros(82, np.int64), np.zeros(82, np.int64)
    depth, found, nodes = 0, 0, 0
    cells[0], left[0] = _tightest(grid, rows, columns, boxes)
    while depth >= 0 and nodes < most:
        cell = cells[depth]
        if cell < 0:
            found += 1
            if found == 1:
                first[:] = grid
            if found >= limit:
                return found, nodes, first
            depth -= 1
            continue
        if grid[cell] != EMPTY:
            _mark(cell, 1 << grid[cell], rows, columns, boxes)
            grid[cell] = EMPTY
        if left[depth] == 0:
            depth -= 1
            continue
        for rank in range(9):
            symbol = order[cell, rank]
            if left[depth] & (1 << symbol):
                break
        left[depth] ^= 1 << symbol
        grid[cell] = symbol
        _mark(cell, 1 << symbol, rows, columns, boxes)
        nodes += 1
        depth += 1
        cells[depth], left[depth] = _tightest(grid, rows, columns, boxes)
    return found, nodes, first


@njit(cache=True)
def _plain_order() -> ndarray:
    order = np.empty((81, 9), np.int64)
    for rank in range(9):
        order[:, rank] = rank
    return order


@njit(cache=True)
def _random_grids(count: int, seed: int) -> ndarray:
    np.random.seed(seed)
    out = np.empty((count, 81), np.int64)
    order = _plain_order()
    for n in range(count):
        for cell in range(81):
            np.random.shuffle(order[cell])
        out[n] = _search(np.full(81, EMPTY), 1, order)[2]
    return out


@njit(cache=True)
def _dig(solution: ndarray, givens: int, seed: int) -> ndarray:
    """Empty cells in random order as long as the solution stays unique and more than `givens` are left."""
    np.random.seed(seed)
    puzzle, left, order = solution.copy(), 81, _plain_order()
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
    found, nodes, first = _search(puzzle, 1, _plain_order())
    return (first if found else None), nodes


def count_solutions(puzzle: Grid, limit: int = 2) -> int:
    """How many solutions there are, counted up to `limit`."""
    return int(_search(puzzle, limit, _plain_order())[0])


def only_solution(puzzle: Grid, most: int) -> Grid | None:
    """The solution, where trying at most `most` symbols proves that there is just one; else None."""
    found, nodes, first = _search(puzzle, 2, _plain_order(), most)
    return first if found == 1 and nodes < most else None


def difficulty(puzzle: Grid) -> int:
    """Symbols tried, beyond one for each empty cell, until the search has proved the solution unique: 0 = never guessed wrong."""
    _, nodes, _ = _search(puzzle, 2, _plain_order())
    return int(nodes - (puzzle == EMPTY).sum())


def random_grids(count: int, seed: int) -> Grids:
    """Complete valid grids by randomised search: every grid can come, not all equally often."""
    grids: Grids = _random_grids(count, seed)
    return grids


def dig(solution: Grid, givens: int, seed: int) -> Grid:
    """A puzzle whose only solution is `solution`, with `givens` cells left or as few as this order of digging reaches.

    With 0 it is minimal: what could not be dug when its turn came cannot be dug when less is given.
    """
    puzzle: Grid = _dig(solution, givens, seed)
    return puzzle
