"""Entropy, divergence and the normal form of a pair matrix: pure functions, reduced in float64 piece by piece, with 0 log 0 = 0."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pairmi.types import PairMatrix, PerPosition, Positions, Prediction

PIECE = 1 << 17  # numbers that a reduction holds at once: they stay in the cache, and no copy of a whole prediction is made
LARGE = 1024  # symbols, from which on single terms are computed in float32; their sums are kept in float64 all the same
NEVER, IMPOSSIBLE = -200.0, -1e30  # log-probabilities: whose exp is 0 in float32; that stands for minus infinity in products with 0

Distributions = Float[Tensor, "*N V"]
PerDistribution = Float[Tensor, "*N"]


def reduced(reduce: Callable[..., tuple[Tensor, ...]], *of: Distributions) -> tuple[PerDistribution, ...]:
    """Numbers that `reduce` makes of each distribution, a bounded piece at a time."""
    shape = of[0].shape
    flat = [x.reshape(-1, shape[-1]) for x in of]
    pieces = zip(*(x.split(max(1, PIECE // max(1, shape[-1]))) for x in flat), strict=True)
    found = zip(*(reduce(*piece) for piece in pieces), strict=True)
    return tuple(torch.cat(values).double().view(shape[:-1]) for values in found)


def _terms(log_p: Distributions) -> tuple[Tensor, Tensor]:
    """Probabilities, and log-probabilities that can be multiplied by them."""
    if log_p.shape[-1] < LARGE:
        log_p = log_p.double()
        return log_p.exp(), log_p
    log_p = log_p.float().clamp_min(NEVER)
    return log_p.exp(), log_p


def _quick(log_probs: Distributions) -> bool:
    """Whether sums are tried first as they are, and with impossible symbols replaced only if that gave no number."""
    return log_probs.shape[-1] >= LARGE and log_probs.dtype == torch.float32 and log_probs.device.type == "cpu"


def _mass_and_entropy(log_probs: Distributions) -> tuple[Tensor, Tensor]:
    if _quick(log_probs):
        p = log_probs.exp()
        negative = torch.linalg.vecdot(p, log_probs)
        if not bool(negative.isnan().any()):  # no symbol has probability 0, or is no number: nothing need be replaced
            return p.sum(-1), negative.neg()
    p, log_p = _terms(log_probs)
    if p.dtype == torch.float64:
        return p.sum(-1), torch.xlogy(p, p).sum(-1).neg()
    return p.sum(-1), torch.linalg.vecdot(p, log_p).neg()


def mass_and_entropy(log_probs: Distributions) -> tuple[PerDistribution, PerDistribution]:
    """What the probabilities of each distribution sum to, and its entropy, in one sweep."""
    mass, entropies = reduced(_mass_and_entropy, log_probs)
    return mass, entropies.clamp_min(0)


def mass(log_probs: Distributions) -> PerDistribution:
    """What the probabilities of each distribution sum to."""
    return reduced(lambda log_p: (log_p.float().exp().sum(-1),), log_probs)[0]


def entropy(log_probs: Distributions) -> PerDistribution:
    """H(p) = -sum_v p(v) log p(v) of each distribution, in nats."""
    return mass_and_entropy(log_probs)[1]


def entropy_of(prediction: Prediction) -> PerPosition:
    """The entropy of every position: what the meter found when it checked the prediction, or computed now."""
    return entropy(prediction.log_probs) if prediction.entropies is None else prediction.entropies


def _kl(log_p: Distributions, log_q: Distributions) -> tuple[Tensor, Tensor]:
    if _quick(log_p) and _quick(log_q):
        p = log_p.exp()
        found = torch.linalg.vecdot(p, log_p - log_q)
        if not bool(found.isnan().any()):
            return found, p.sum(-1)
    p, log_p = _terms(log_p)
    if p.dtype == torch.float64:
        return torch.where(p > 0, p * (log_p - log_q.double()), 0).sum(-1), p.sum(-1)
    return torch.linalg.vecdot(p, log_p.sub_(torch.where(p > 0, log_q.float(), 0))), p.sum(-1)


def kl_and_mass(log_p: Distributions, log_q: Distributions) -> tuple[PerDistribution, PerDistribution]:
    """KL(p || q) in nats, infinite where q rules out what p allows; and what p sums to, in one sweep."""
    found, mass = reduced(_kl, log_p, log_q)
    return found.clamp_min(0), mass


def kl(log_p: Distributions, log_q: Distributions) -> PerDistribution:
    """KL(p || q) in nats; infinite where q rules out what p allows."""
    return kl_and_mass(log_p, log_q)[0]


def _total_variation(log_p: Distributions, log_q: Distributions) -> tuple[Tensor, Tensor]:
    p = _terms(log_p)[0]
    return (p - _terms(log_q)[0]).abs().sum(-1), p.sum(-1)


def total_variation_and_mass(log_p: Distributions, log_q: Distributions) -> tuple[PerDistribution, PerDistribution]:
    """Half the L1 distance, and what p sums to, in one sweep."""
    found, mass = reduced(_total_variation, log_p, log_q)
    return 0.5 * found, mass


def total_variation(log_p: Distributions, log_q: Distributions) -> PerDistribution:
    """Half the L1 distance: 1 - this is the chance that a draft from q is accepted as a draw from p."""
    return total_variation_and_mass(log_p, log_q)[0]


def confidence(log_probs: Distributions) -> PerDistribution:
    """The probability of the likeliest symbol."""
    return log_probs.amax(-1).double().exp()


def margin(log_probs: Distributions) -> PerDistribution:
    """The probability of the likeliest symbol less that of the next."""
    best = log_probs.topk(min(2, log_probs.shape[-1]), dim=-1).values.double().exp()
    return best[..., 0] - best[..., -1] if best.shape[-1] == 2 else best[..., 0]


def pairs(masked: Positions) -> Bool[Tensor, "B L L"]:
    """The pairs of two different masked positions."""
    length = masked.shape[-1]
    return masked[:, :, None] & masked[:, None, :] & ~torch.eye(length, dtype=torch.bool, device=masked.device)


def pair_matrix(raw: PairMatrix, masked: Positions) -> PairMatrix:
    """The normal form: the mean of both directions, not below 0, zero on the diagonal and outside masked x masked."""
    return torch.where(pairs(masked), 0.5 * (raw + raw.transpose(1, 2)), 0).clamp_min(0)


def apc(scores: Float[Tensor, "L L"]) -> Float[Tensor, "L L"]:
    """S_ij - S_i. S_.j / S_.. : without what each position has in common with all (the average product correction, Dunn et al. 2008)."""
    off = ~torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    inside = torch.where(off, scores, 0)
    rows, columns = (inside.sum(axis) / max(1, len(scores) - 1) for axis in (1, 0))
    total = rows.mean()
    return torch.where(off, scores - torch.outer(rows, columns) / total, 0) if float(total) else torch.zeros_like(scores)
