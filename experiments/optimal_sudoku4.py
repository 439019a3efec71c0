"""The fewest passes in which the 4x4 Sudoku world can be decoded from the empty board without any loss, by exhaustive search.

A pass may fill every determined cell and any set of cells that are jointly independent given what is known: drawing them from
their marginals is then exact. The search takes the best such set in every state, states taken up to symmetry.

    python experiments/optimal_sudoku4.py
"""

import itertools
from functools import cache

import numpy as np

from pairmi.tasks.tables import sudoku4

GRIDS = sudoku4().support.numpy().astype(np.int8)
CELLS = GRIDS.shape[1]


def symmetries() -> np.ndarray:
    """Each symmetry of the board and the digits as a permutation of the 288 grids."""
    swaps = [(0, 1, 2, 3), (1, 0, 2, 3), (0, 1, 3, 2), (1, 0, 3, 2)]
    lines = [tuple(order[i] for i in swap) for swap in swaps for order in ((0, 1, 2, 3), (2, 3, 0, 1))]
    place = {grid.tobytes(): n for n, grid in enumerate(GRIDS)}
    boards = GRIDS.reshape(-1, 4, 4)
    found = []
    for rows, columns, flip, digits in itertools.product(lines, lines, (False, True), itertools.permutations(range(4))):
        moved = np.array(digits, dtype=np.int8)[boards[:, rows][:, :, columns]]
        moved = moved.transpose(0, 2, 1) if flip else moved
        found.append([place[np.ascontiguousarray(grid).tobytes()] for grid in moved.reshape(-1, CELLS)])
    return np.array(found)


SYMMETRIES = symmetries()


def canonical(alive: np.ndarray) -> bytes:
    """The smallest of a state's images: equal for states that a symmetry carries into each other."""
    images = np.packbits(alive[SYMMETRIES], axis=1)
    return bytes(images[np.lexsort(images.T[::-1])[0]])


def is_independent(grids: np.ndarray, cells: tuple[int, ...]) -> bool:
    """Whether the joint distribution of the cells is the product of their marginals."""
    symbols, counts = np.unique(grids[:, cells], axis=0, return_counts=True)
    singles = [np.bincount(grids[:, cell], minlength=4) for cell in cells]
    if len(symbols) != np.prod([np.count_nonzero(single) for single in singles]):
        return False
    expected = np.prod([single[symbols[:, n]] for n, single in enumerate(singles)], axis=0, dtype=np.int64)
    return bool((counts.astype(np.int64) * len(grids) ** (len(cells) - 1) == expected).all())


def independent_sets(grids: np.ndarray, open_cells: list[int]) -> list[tuple[int, ...]]:
    """All non-empty jointly independent sets; every subset of one is one, so they are grown cell by cell."""
    layer: list[tuple[int, ...]] = [(cell,) for cell in open_cells]
    found = list(layer)
    while layer:
        layer = [(*cells, cell) for cells in layer for cell in open_cells if cell > cells[-1] and is_independent(grids, (*cells, cell))]
        found += layer
    return found


@cache
def passes_left(state: bytes) -> float:
    """The least expected number of passes from a state (the grids still possible) in which something is still to be filled."""
    alive = np.unpackbits(np.frombuffer(state, dtype=np.uint8), count=len(GRIDS)).astype(bool)
    grids = GRIDS[alive]
    open_cells = [cell for cell in range(CELLS) if (grids[:, cell] != grids[0, cell]).any()]
    if not open_cells:
        return 1.0
    best = float(CELLS)
    for cells in independent_sets(grids, open_cells):
        symbols, counts = np.unique(grids[:, cells], axis=0, return_counts=True)
        total = 1.0
        for outcome, count in zip(symbols, counts, strict=True):
            if len(cells) < len(open_cells) and total < best:
                total += count / len(grids) * passes_left(canonical(alive & (GRIDS[:, cells] == outcome).all(1)))
        best = min(best, total)
    return best


if __name__ == "__main__":
    answer = passes_left(canonical(np.ones(len(GRIDS), dtype=bool)))
    print(
        f"optimal loss-free schedule of 4x4 Sudoku from the empty board: {answer:.6f} passes ({passes_left.cache_info().currsize} states)"
    )
