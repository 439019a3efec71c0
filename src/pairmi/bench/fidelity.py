"""How well estimates of mutual information agree with the truth: plain statistics over pairs."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Values = Float[Tensor, " N"]


def r2(predicted: Values, true: Values) -> float:
    """The share of the variance that is explained: 1 - mean squared error / variance; can be negative."""
    predicted, true = predicted.double(), true.double()
    return 1 - float((predicted - true).square().sum() / (true - true.mean()).square().sum().clamp_min(1e-300))


def mae(predicted: Values, true: Values) -> float:
    """The mean absolute error."""
    return float((predicted.double() - true.double()).abs().mean())


def ranks(values: Values) -> Values:
    """Ranks from 1; equal values share the mean of theirs."""
    ordered = values.double().sort().values
    below, upto = (torch.searchsorted(ordered, values.double(), right=right) for right in (False, True))
    return 0.5 * (below + upto + 1).double()


def spearman(predicted: Values, true: Values) -> float:
    """The correlation of the ranks; 0 where one of the two is constant."""
    a, b = (x - x.mean() for x in (ranks(predicted), ranks(true)))
    size = (a.square().sum() * b.square().sum()).sqrt()
    return float((a * b).sum() / size) if float(size) > 0 else 0.0


def auroc(score: Values, positive: Bool[Tensor, " N"]) -> float | None:
    """The chance that a positive scores above a negative, ties counted half (Mann and Whitney); None without both kinds."""
    wins, count = int(positive.sum()), len(positive)
    if wins in (0, count):
        return None
    return float((ranks(score)[positive].sum() - wins * (wins + 1) / 2) / (wins * (count - wins)))


def scale_to(predicted: Values, true: Values) -> float:
    """The factor that brings a control nearest to the truth (least squares)."""
    predicted, true = predicted.double(), true.double()
    return float((predicted * true).sum() / predicted.square().sum().clamp_min(1e-300))


def calibration(predicted: Values, true: Values, bins: int = 20) -> list[dict[str, Any]]:
    """The mean prediction and the mean truth in bins of equally many pairs."""
    order = predicted.argsort()
    parts = [part for part in order.tensor_split(bins) if len(part)]
    return [{"predicted": float(predicted[p].mean()), "true": float(true[p].mean()), "pairs": len(p)} for p in parts]
