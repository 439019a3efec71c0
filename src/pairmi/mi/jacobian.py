"""The categorical Jacobian: how far the beliefs at every position move when one symbol of a complete sequence is replaced."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pairmi.counting import Counting

LEAST = -30.0  # log-probability: what is less likely is as impossible; it keeps minus infinity out of the differences


def categorical_jacobian(
    meter: Counting, sequence: Int[Tensor, " L"], symbols: Int[Tensor, "L S"], batch_rows: int = 256, symmetric: bool = True
) -> Float[Tensor, "L L"]:
    """sqrt(sum over symbols a, b of J[i, a, j, b]^2), J centred in each index and symmetrised (Zhang et al. 2024); L S rows.

    J[i, a, j, b] is the logit of b at j after a was put at i, less the one before; a and b are among the `symbols` of i and of j.
    Centring removes what does not depend on all four indices, so the unchanged sequence is not needed, and log-probabilities serve as
    well as logits. Memory: two tensors of (L S)^2 numbers.
    """
    length, size = symbols.shape
    rows, places = sequence.repeat(length * size, 1), torch.arange(length, device=sequence.device).repeat_interleave(size)
    rows[torch.arange(length * size, device=sequence.device), places] = symbols.flatten()
    moved = torch.cat([meter(piece).log_probs.gather(2, symbols.expand(len(piece), -1, -1)) for piece in rows.split(batch_rows)])
    jacobian = moved.view(length, size, length, size).clamp_min(LEAST)
    for index in range(4):
        jacobian -= jacobian.mean(index, keepdim=True)
    if symmetric:
        jacobian = 0.5 * (jacobian + jacobian.permute(2, 3, 0, 1))
    return jacobian.square_().sum((1, 3), dtype=torch.float64).sqrt().fill_diagonal_(0)
