"""How well a Sudoku model's beliefs are calibrated, and how many givens its puzzles have."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pairmi.info import confidence
from pairmi.model import Model


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
