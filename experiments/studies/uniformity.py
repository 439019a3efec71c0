"""Whether generated boards look like draws from all complete grids: digits of cells and of pairs of cells, by chi-square."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from pairmi.bench.stats import library
from pairmi.commit import Sampling
from pairmi.decoding import decode
from pairmi.model import Model
from pairmi.spec import rule
from pairmi.tasks.sudoku.rules import cell_name, peers
from studies.boards import Boards

PAIRS = ((0, 1), (0, 9), (0, 10), (0, 12), (0, 39), (40, 44), (40, 49), (30, 50), (20, 60), (8, 72), (4, 76), (36, 44), (11, 70), (0, 80))


def pair_probability(first: int, second: int) -> Float[Tensor, "9 9"]:
    """The joint law of two cells under any law of grids that Sudoku's symmetries leave alone, the uniform one included.

    Cells that see each other differ, else nothing is preferred. A digit stands once in each row of a band, in another
    box each time: two cells of one band (or stack) in different boxes and lines agree with probability 1/6. What is left of a
    line for the other bands makes it 1/9 for all others: independent.
    """
    if peers()[first, second]:
        same = 0.0
    else:
        near = first // 27 == second // 27 or first % 9 // 3 == second % 9 // 3
        same = 1 / 6 if near else 1 / 9
    return torch.full((9, 9), (1 - same) / 72, dtype=torch.float64).fill_diagonal_(same / 9)


def tables(boards: Int[Tensor, "N 81"]) -> dict[str, tuple[list[float], list[float]]]:
    """Observed and expected counts: the digits of every cell, and both digits of some pairs of cells in every relation."""
    found = {}
    for cell in range(81):
        observed = np.bincount(boards[:, cell].numpy(), minlength=9).astype(float)
        found[cell_name(cell)] = (observed.tolist(), [len(boards) / 9] * 9)
    for first, second in PAIRS:
        expected = len(boards) * pair_probability(first, second).flatten()
        observed = np.bincount((9 * boards[:, first] + boards[:, second]).numpy(), minlength=81).astype(float)
        possible = expected > 0
        found[f"{cell_name(first)} {cell_name(second)}"] = (observed[possible.numpy()].tolist(), expected[possible].tolist())
    return found


def worst_fit(boards: Int[Tensor, "N 81"]) -> tuple[str, float]:
    """The cell or pair that fits worst, and its p-value, corrected for the number of tables. Valid boards only."""
    return chi_square(tables(boards))


def chi_square(counts: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> tuple[str, float]:
    """Of several tables of observed and expected counts the worst, and its p-value times their number (Bonferroni)."""
    values = {name: float(library("scipy.stats").chisquare(*table).pvalue) for name, table in counts.items()}
    worst = min(values, key=lambda name: values[name])
    return worst, min(1.0, values[worst] * len(values))


def variety(model: Model, boards: Boards, spec: str, sampling: Sampling, enough: int = 400) -> dict[str, Any]:
    """How many of the valid boards differ, and, for enough of them (five expected in every class), the worst fit with its p-value."""
    filled = torch.stack([one.tokens for one in decode(model, boards.canvases, rule(spec, model), sampling)])
    good = filled[boards.good(filled)]
    record: dict[str, Any] = {"boards": len(filled), "valid": len(good), "distinct": len(good.unique(dim=0))}
    return record | (dict(zip(("worst", "p"), worst_fit(good), strict=True)) if len(good) >= enough else {})
