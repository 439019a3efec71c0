"""How good the Sudoku model's beliefs are: puzzles solved, boards generated, calibration."""

import time
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pairmi.bench.stats import wilson
from pairmi.decoding import Sampling, decode
from pairmi.info import confidence
from pairmi.spec import Model, rule
from pairmi.tasks.sudoku.puzzles import Puzzles
from pairmi.tasks.sudoku.rules import valid
from pairmi.types import Decoded


def _record(name: str, good: Bool[Tensor, " N"], out: Decoded, seconds: float) -> dict[str, Any]:
    low, high = wilson(int(good.sum()), len(good))
    return {
        "name": name,
        "boards": len(good),
        "quality": float(good.double().mean()),
        "low": low,
        "high": high,
        "passes": float(out.passes.double().mean()),
        "rows": float(out.rows.double().mean()),
        "seconds_per_board": seconds / len(good),
    }


def solve(model: Model, puzzles: Puzzles, spec: str, sampling: Sampling, batch: int = 128) -> dict[str, Any]:
    """The fraction of puzzles filled exactly as their only solution says, with a 95 % interval."""
    start = time.perf_counter()
    out = decode(model, puzzles.canvases, rule(spec, model), sampling, batch_size=batch)
    good = (out.tokens == puzzles.solutions).all(1)
    return _record(_label(spec, sampling), good, out, time.perf_counter() - start)


def generate(model: Model, count: int, spec: str, sampling: Sampling, batch: int = 128) -> dict[str, Any]:
    """The fraction of boards made from nothing that obey the rules, with a 95 % interval, and how many of these differ."""
    start = time.perf_counter()
    empty = torch.full((count, 81), 9)
    out = decode(model, empty, rule(spec, model), sampling, batch_size=batch)
    good = valid(out.tokens)
    return _record(_label(spec, sampling), good, out, time.perf_counter() - start) | {"distinct": len(out.tokens[good].unique(dim=0))}


def _label(spec: str, sampling: Sampling) -> str:
    drawn = "argmax" if sampling.greedy else f"temperature {sampling.temperature:g}"
    return f"{spec}, {drawn}{', verified' if sampling.verify else ''}"


def calibration(model: Model, canvases: Int[Tensor, "N 81"], solutions: Int[Tensor, "N 81"], bins: int = 15) -> dict[str, Any]:
    """Confidence against accuracy over the empty cells, in equally wide bins, and the expected calibration error."""
    sure, right = [], []
    for canvas, solution in zip(canvases.split(128), solutions.split(128), strict=True):
        log_probs, empty = model(canvas).log_probs, canvas == model.vocab.size
        sure.append(confidence(log_probs)[empty])
        right.append((log_probs.argmax(2) == solution)[empty])
    belief, truth = torch.cat(sure), torch.cat(right).double()
    place = (belief * bins).long().clamp_max(bins - 1)
    count, believed, happened = (_binned(place, value, bins) for value in (torch.ones_like(belief), belief, truth))
    filled = count > 0
    gap = (believed - happened)[filled].abs().sum() / count.sum()
    mean = [(x[filled] / count[filled]).tolist() for x in (believed, happened)]
    return {"ece": float(gap), "cells": len(belief), "confidence": mean[0], "accuracy": mean[1], "count": count[filled].tolist()}


def _binned(place: Int[Tensor, " N"], value: Float[Tensor, " N"], bins: int) -> Float[Tensor, " K"]:
    return torch.zeros(bins, dtype=torch.float64).index_add(0, place, value.double())


def histogram(givens: Int[Tensor, " N"]) -> str:
    """How many puzzles have how many givens."""
    values: Sequence[tuple[int, int]] = [(int(v), int(n)) for v, n in zip(*givens.unique(return_counts=True), strict=True)]
    return ", ".join(f"{value}: {count}" for value, count in values)
