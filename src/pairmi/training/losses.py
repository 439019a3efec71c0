"""How far predicted mutual information is from the labels: the paper's loss and three others, each a sum and what it is a mean over."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Pairs = Float[Tensor, "B T"]  # upper triangles, in nats
Parts = tuple[Float[Tensor, ""], Float[Tensor, ""]]  # error and weight: parts of a batch are added up before they are divided
Loss = Callable[[Pairs, Pairs, Tensor], Parts]  # predicted, true, which pairs are masked


def mse(predicted: Pairs, true: Pairs, within: Bool[Tensor, "B T"]) -> Parts:
    """The paper's: the mean squared error over the masked pairs."""
    error = torch.where(within, predicted - true, 0)
    return error.square().sum(), within.sum().float()


def balanced(predicted: Pairs, true: Pairs, within: Bool[Tensor, "B T"], floor: float = 1e-4) -> Parts:
    """The mean over states with a pair of 1 - R^2: squared error over the state's own variance.

    Nearly full canvases have a hundred times less to tell than empty ones, so the plain mean forgets them, and R^2 at each level is
    what counts. `floor` (nats^2) keeps states in which nothing depends on anything from counting without limit.
    """
    count = within.sum(1).clamp_min(1)
    error = torch.where(within, predicted - true, 0).square().sum(1) / count
    mean = torch.where(within, true, 0).sum(1) / count
    variance = torch.where(within, true - mean[:, None], 0).square().sum(1) / count
    return (error / (variance + floor)).sum(), within.any(1).sum().float()


def root(predicted: Pairs, true: Pairs, within: Bool[Tensor, "B T"], share: float = 0.1, floor: float = 1e-3) -> Parts:
    """The paper's, and a share of the error of the square roots, in which small values (most of them) still count."""
    roots = (predicted.clamp_min(0) + floor).sqrt() - (true + floor).sqrt()
    error, weight = mse(predicted, true, within)
    return error + share * torch.where(within, roots, 0).square().sum(), weight


def poisson(predicted: Pairs, true: Pairs, within: Bool[Tensor, "B T"], floor: float = 1e-4) -> Parts:
    """The divergence of Poisson rates, p - y log p: like the squared error least at E y whatever the noise, so drawn labels do not bias it.

    It counts errors relative to what is predicted: large labels, which are noisy in proportion, do not drown the small ones.
    """
    rate, label = predicted.clamp_min(0) + floor, true + floor
    error = rate - label - label * (rate / label.clamp_min(floor)).log()
    return torch.where(within, error, 0).sum(), within.sum().float()


LOSSES: dict[str, Loss] = {"mse": mse, "balanced": balanced, "root": root, "poisson": poisson}
