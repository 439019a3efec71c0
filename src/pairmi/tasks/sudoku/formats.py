"""Sudoku as text: 81 characters row by row with '.' for empty."""

from jaxtyping import Int
from torch import Tensor

from pairmi.types import PairmiError

EMPTY = 9


def _checked(tokens: Int[Tensor, " 81"]) -> list[int]:
    if tokens.shape != (81,) or int(tokens.min()) < 0 or int(tokens.max()) > EMPTY:
        raise PairmiError(f"Sudoku: expected 81 tokens of 0..9 (9 = empty), got {tokens.tolist()}")
    listed: list[int] = tokens.tolist()
    return listed


def to_text(tokens: Int[Tensor, " 81"]) -> str:
    """The canonical line: 81 characters, row by row, '.' for empty."""
    return "".join("123456789."[token] for token in _checked(tokens))
