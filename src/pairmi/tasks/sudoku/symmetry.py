"""The symmetries of Sudoku: relabelled digits, permuted bands, stacks, rows and columns, transposition."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def _lines(count: int, rng: torch.Generator) -> Int[Tensor, "N 9"]:
    """Permutations of nine lines that keep bands of three together."""
    bands = torch.rand(count, 3, 1, generator=rng).argsort(1)
    within = torch.rand(count, 3, 3, generator=rng).argsort(2)
    return (3 * bands + within).flatten(1)


def random_symmetries(count: int, rng: torch.Generator) -> tuple[Int[Tensor, "N 81"], Int[Tensor, "N 9"]]:
    """Random elements of the group, as a source cell for each cell and a new digit for each digit."""
    rows, columns = _lines(count, rng), _lines(count, rng)
    source = 9 * rows[:, :, None] + columns[:, None, :]
    flip = torch.rand(count, generator=rng) < 0.5
    source = torch.where(flip[:, None, None], source.transpose(1, 2), source)
    return source.flatten(1), torch.rand(count, 9, generator=rng).argsort(1)


def transform(grids: Int[Tensor, "N 81"], source: Int[Tensor, "N 81"], digits: Int[Tensor, "N 9"]) -> Int[Tensor, "N 81"]:
    """Apply one symmetry to each grid; empty cells (9) stay empty."""
    labels = torch.cat([digits, torch.full_like(digits[:, :1], 9)], dim=1)
    return labels.gather(1, grids.gather(1, source))


def transform_pairs(matrices: Float[Tensor, "N 81 81"], source: Int[Tensor, "N 81"]) -> Float[Tensor, "N 81 81"]:
    """The same symmetries for what belongs to pairs of cells."""
    rows = matrices.gather(1, source[:, :, None].expand_as(matrices))
    return rows.gather(2, source[:, None, :].expand_as(matrices))
