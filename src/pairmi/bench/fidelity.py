"""How well estimates of mutual information agree with the truth: plain statistics over pairs."""

from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor

from pairmi.bench.stats import library

Values = Float[Tensor, " N"]


def r2(predicted: Values, true: Values) -> float:
    """The share of the variance that is explained: 1 - mean squared error / variance; can be negative."""
    predicted, true = predicted.double(), true.double()
    return 1 - float((predicted - true).square().sum() / (true - true.mean()).square().sum().clamp_min(1e-300))


def mae(predicted: Values, true: Values) -> float:
    """The mean absolute error."""
    return float((predicted.double() - true.double()).abs().mean())


def spearman(predicted: Values, true: Values) -> float:
    """The correlation of the ranks; 0 where one of the two is constant."""
    if bool((predicted == predicted[0]).all() | (true == true[0]).all()):
        return 0.0
    return float(library("scipy.stats").spearmanr(predicted.numpy(), true.numpy()).statistic)


def auroc(score: Values, positive: Bool[Tensor, " N"]) -> float | None:
    """The chance that a positive scores above a negative, ties counted half; None without both kinds."""
    if bool(positive.all() | ~positive.any()):
        return None
    return float(library("sklearn.metrics").roc_auc_score(positive.numpy(), score.numpy()))


def scale_to(predicted: Values, true: Values) -> float:
    """The factor that brings a control nearest to the truth (least squares)."""
    predicted, true = predicted.double(), true.double()
    return float((predicted * true).sum() / predicted.square().sum().clamp_min(1e-300))


def calibration(predicted: Values, true: Values, bins: int = 20) -> list[dict[str, Any]]:
    """The mean prediction and the mean truth in bins of equally many pairs."""
    order = predicted.argsort()
    parts = [part for part in order.tensor_split(bins) if len(part)]
    return [{"predicted": float(predicted[p].mean()), "true": float(true[p].mean()), "pairs": len(p)} for p in parts]
