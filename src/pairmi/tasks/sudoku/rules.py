"""The rules of Sudoku on tokens (of 9x9: 0..8, 9 = empty): who sees whom, what contradicts, what is valid; boards as text."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pairmi.types import PairmiError

EMPTY = 9


def units(order: int = 3) -> Int[Tensor, "U N"]:
    """The rows, columns and boxes of an order^2 x order^2 board, as lists of cells."""
    side = order * order
    cells = torch.arange(side * side).view(side, side)
    boxes = cells.view(order, order, order, order).transpose(1, 2).reshape(side, side)
    return torch.cat([cells, cells.t(), boxes])


def peers(order: int = 3) -> Float[Tensor, "L L"]:
    """1 for every two different cells that share a row, a column or a box."""
    side = order * order
    graph = torch.zeros(side * side, side * side, dtype=torch.float64)
    for unit in units(order):
        graph[unit[:, None], unit] = 1
    return graph.fill_diagonal_(0)


def valid(grids: Int[Tensor, "N L"], order: int = 3) -> Bool[Tensor, " N"]:
    """Whether every row, column and box holds each digit once."""
    return (grids[:, units(order)].sort(-1).values == torch.arange(order**2)).all(-1).all(-1)


def to_text(tokens: Int[Tensor, " 81"]) -> str:
    """The canonical line: 81 characters, row by row, '.' for empty."""
    if tokens.shape != (81,) or int(tokens.min()) < 0 or int(tokens.max()) > EMPTY:
        raise PairmiError(f"Sudoku: expected 81 tokens of 0..9 (9 = empty), got {tokens.tolist()}")
    return "".join("123456789."[token] for token in tokens.tolist())


def cell_name(cell: int, side: int = 9) -> str:
    """The usual name, counted from 1: r2c5."""
    return f"r{cell // side + 1}c{cell % side + 1}"


def conflict(canvas: Int[Tensor, " L"], order: int = 3) -> str | None:
    """The first two equal digits in one row, column or box; None if there are none."""
    side = order**2
    for number, unit in enumerate(units(order)):
        digits = canvas[unit].tolist()
        for n, digit in enumerate(digits):
            if digit < side and digit in digits[:n]:
                first, second = (cell_name(int(unit[m]), side) for m in (digits.index(digit), n))
                kind = ("row", "column", "box")[number // side]
                return f"{digit + 1} stands twice in {kind} {number % side + 1}, at {first} and {second}"
    return None
