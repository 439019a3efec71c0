"""The categorical Jacobian: how far the beliefs at every position move when one residue of a complete sequence is replaced."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pairmi.types import Backbone


def categorical_jacobian(backbone: Backbone, sequence: Int[Tensor, " L"], batch_rows: int = 256) -> Float[Tensor, "L L"]:
    """sqrt(sum over symbols a, b of J[i, a, j, b]^2), J centred in each index and symmetrised (Zhang et al. 2024); L V rows.

    J[i, a, j, b] is the logit of b at j after a was put at i, less the one before. Centring removes what does not depend on all four
    indices, so the unchanged sequence is not needed, and log-probabilities serve as well as logits.
    """
    length, size = len(sequence), backbone.vocab.size
    rows = sequence.repeat(length * size, 1)
    rows[torch.arange(length * size), torch.arange(length).repeat_interleave(size)] = torch.arange(size).repeat(length)
    moved = torch.cat([backbone(piece).log_probs.double() for piece in rows.split(batch_rows)])
    jacobian = moved.view(length, size, length, size)
    for index in range(4):
        jacobian = jacobian - jacobian.mean(index, keepdim=True)
    jacobian = 0.5 * (jacobian + jacobian.permute(2, 3, 0, 1))
    return jacobian.square().sum((1, 3)).sqrt().fill_diagonal_(0)
