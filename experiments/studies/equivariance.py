"""How far a Sudoku model's beliefs follow Sudoku's symmetries."""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from pairmi.mi.probe import Probe
from pairmi.model import Model
from pairmi.tasks.sudoku.symmetry import random_symmetries, transform, transform_pairs


def equivariance(model: Model, tokens: Int[Tensor, "N 81"], probe: Probe, rng: torch.Generator) -> dict[str, Any]:
    """How far the model's beliefs follow Sudoku's symmetries: probed MI of moved canvases against the moved MI of the canvases.

    `r2` is the best that a head can reach on moved labels; augmentation with it teaches the head the symmetric part of the truth.
    """
    source, digits = random_symmetries(len(tokens), rng)
    moved = transform(tokens, source, digits)
    before, after = (probe.measure(model(canvas), model) for canvas in (tokens, moved))
    expected, masked = transform_pairs(before.matrix, source), moved == model.vocab.size
    within = masked[:, :, None] & masked[:, None, :] & ~torch.eye(tokens.shape[1], dtype=torch.bool)
    error, true = (after.matrix - expected)[within], after.matrix[within]
    entropies = (after.entropies - before.entropies.gather(1, source))[masked]
    return {
        "states": len(tokens),
        "r2": 1 - float(error.square().sum() / (true - true.mean()).square().sum().clamp_min(1e-300)),
        "mae": float(error.abs().mean()),
        "entropy_mae": float(entropies.abs().mean()),
    }
