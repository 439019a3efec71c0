"""Entropy, divergence and the normal form of a pair matrix: pure functions, reduced in float64, with 0 log 0 = 0."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pairmi.types import PairMatrix, Positions


def entropy(log_probs: Float[Tensor, "*N V"]) -> Float[Tensor, "*N"]:
    """H(p) = -sum_v p(v) log p(v) of each distribution, in nats."""
    log_probs = log_probs.double()
    return torch.xlogy(log_probs.exp(), log_probs.exp()).sum(-1).neg().clamp_min(0)


def kl(log_p: Float[Tensor, "*N V"], log_q: Float[Tensor, "*N V"]) -> Float[Tensor, "*N"]:
    """KL(p || q) in nats; infinite where q rules out what p allows."""
    log_p, log_q = log_p.double(), log_q.double()
    p = log_p.exp()
    return torch.where(p > 0, p * (log_p - log_q), 0).sum(-1).clamp_min(0)


def total_variation(log_p: Float[Tensor, "*N V"], log_q: Float[Tensor, "*N V"]) -> Float[Tensor, "*N"]:
    """Half the L1 distance: 1 - this is the chance that a draft from q is accepted as a draw from p."""
    return 0.5 * (log_p.double().exp() - log_q.double().exp()).abs().sum(-1)


def confidence(log_probs: Float[Tensor, "*N V"]) -> Float[Tensor, "*N"]:
    """The probability of the likeliest symbol."""
    return log_probs.amax(-1).double().exp()


def margin(log_probs: Float[Tensor, "*N V"]) -> Float[Tensor, "*N"]:
    """The probability of the likeliest symbol less that of the next."""
    best = log_probs.double().topk(min(2, log_probs.shape[-1]), dim=-1).values.exp()
    return best[..., 0] - best[..., -1] if best.shape[-1] == 2 else best[..., 0]


def pairs(masked: Positions) -> Bool[Tensor, "B L L"]:
    """The pairs of two different masked positions."""
    length = masked.shape[-1]
    return masked[:, :, None] & masked[:, None, :] & ~torch.eye(length, dtype=torch.bool, device=masked.device)


def pair_matrix(raw: PairMatrix, masked: Positions) -> PairMatrix:
    """The normal form: the mean of both directions, not below 0, zero on the diagonal and outside masked x masked."""
    return torch.where(pairs(masked), 0.5 * (raw + raw.transpose(1, 2)), 0).clamp_min(0)
