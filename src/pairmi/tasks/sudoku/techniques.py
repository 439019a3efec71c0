"""Which techniques that people know a puzzle needs: a solver that deduces and never guesses."""

from enum import IntEnum

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from pairmi.tasks.sudoku.solver import ALL, EMPTY, SIZES, Grid, njit

CELLS = np.arange(81).reshape(9, 9)
UNITS = np.concatenate([CELLS, CELLS.T, CELLS.reshape(3, 3, 3, 3).swapaxes(1, 2).reshape(9, 9)])  # [27, 9]: rows, columns, boxes
CROSSINGS = np.array(  # [54, 15] for each line and box that share three cells: these, the six others of the line, those of the box
    [
        [*sorted(line & box), *sorted(line - box), *sorted(box - line)]
        for line in map(set, UNITS[:18].tolist())
        for box in map(set, UNITS[18:].tolist())
        if line & box
    ]
)


class Technique(IntEnum):
    """The hardest technique needed, each with all before it."""

    SINGLES = 0  # a cell has one candidate, or a digit one cell in a unit
    LOCKED = 1  # locked candidates: within a unit a digit is confined to another unit, so it is nowhere else in that one
    SUBSETS = 2  # n cells of a unit share n candidates, or n digits n cells: pairs, triples, quads
    BEYOND = 3  # none of these solves it

    def __str__(self) -> str:
        return self.name.lower()


@njit(cache=True)
def _singles(candidates: ndarray, lines: ndarray, sizes: ndarray) -> bool:
    """Naked and hidden singles in every unit, once; whether a candidate fell."""
    changed = False
    for unit in lines:
        settled, once, twice = 0, 0, 0
        for cell in unit:
            if sizes[candidates[cell]] == 1:
                settled |= candidates[cell]
        for cell in unit:
            if sizes[candidates[cell]] != 1:
                if candidates[cell] & settled:
                    candidates[cell] &= ~settled
                    changed = True
                twice |= once & candidates[cell]
                once |= candidates[cell]
        for cell in unit:
            alone = candidates[cell] & once & ~twice & ~settled
            if sizes[candidates[cell]] > 1 and sizes[alone] == 1:
                candidates[cell] = alone
                changed = True
    return changed


@njit(cache=True)
def _locked(candidates: ndarray, crossings: ndarray) -> bool:
    """Where a line and a box cross: a digit that one of them has only there, the other has only there; whether a candidate fell."""
    changed = False
    for crossing in crossings:
        shared = candidates[crossing[0]] | candidates[crossing[1]] | candidates[crossing[2]]
        for here, there in ((3, 9), (9, 3)):
            confined = shared
            for cell in crossing[here : here + 6]:
                confined &= ~candidates[cell]
            for cell in crossing[there : there + 6]:
                if candidates[cell] & confined:
                    candidates[cell] &= ~confined
                    changed = True
    return changed


@njit(cache=True)
def _subsets(candidates: ndarray, lines: ndarray, sizes: ndarray) -> bool:
    """Every set of n cells of a unit with n candidates: no other cell of it has these; whether a candidate fell.

    The other cells are then a hidden subset, so naked and hidden ones of all sizes are found.
    """
    changed = False
    union = np.zeros(ALL + 1, np.int64)
    for unit in lines:
        for chosen in range(1, ALL):
            last = sizes[(chosen & -chosen) - 1]  # the lowest of the chosen
            union[chosen] = union[chosen & (chosen - 1)] | candidates[unit[last]]
            if sizes[union[chosen]] == sizes[chosen]:
                for n in range(9):
                    if not chosen >> n & 1 and candidates[unit[n]] & union[chosen]:
                        candidates[unit[n]] &= ~union[chosen]
                        changed = True
                if changed:
                    return True
    return changed


@njit(cache=True)
def _deduce(candidates: ndarray, most: int, lines: ndarray, crossings: ndarray, sizes: ndarray) -> int:
    """Leave the candidates that techniques up to number `most` do; the hardest that removed one, always the easiest that does is taken."""
    hardest = 0
    while True:
        if _singles(candidates, lines, sizes):
            continue
        if most >= 1 and _locked(candidates, crossings):
            hardest = max(hardest, 1)
        elif most >= 2 and _subsets(candidates, lines, sizes):
            hardest = 2
        else:
            return hardest


def deduce(puzzle: Grid, most: Technique = Technique.SUBSETS) -> tuple[Int[ndarray, " 81"], Technique]:
    """The candidates (bit d for token d) that techniques up to `most` leave in each cell, and the hardest technique that was needed.

    `BEYOND` where more than one candidate is left somewhere, or none.
    """
    candidates = np.where(puzzle == EMPTY, ALL, 1 << puzzle)
    hardest = _deduce(candidates, int(most), UNITS, CROSSINGS, SIZES)
    return candidates, Technique(hardest) if (SIZES[candidates] == 1).all() else Technique.BEYOND


def technique(puzzle: Grid) -> Technique:
    """The hardest technique that a puzzle with one solution needs."""
    return deduce(puzzle)[1]
