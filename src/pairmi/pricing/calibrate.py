"""Fit the map from what is known when a set is chosen to what its members really lose."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from pairmi.pricing.price import Price, measure
from pairmi.pricing.walk import Members, Watched, joined_members
from pairmi.selectors.charge import FEATURES, TINY, Calibration, steps
from pairmi.types import Backbone, PairmiError, PairwiseMI, Selector

KNOTS = 6  # of each feature, at most
SHRINK = 1e-3  # pulls rises that the data say little of towards 0

Chosen = Callable[[PairwiseMI, Calibration | None, float], Selector]  # the rule of an estimate, a charge (None = pairwise) and a budget


@dataclass(frozen=True)
class Reliability:
    """Predicted beside measured nats a pass, at one budget."""

    budget: float  # that was asked for
    predicted: float
    measured: float
    price: Price


def features_of(members: Members) -> Float[Tensor, "M 4"]:
    """What a charge looks at, in the order of `FEATURES`."""
    return torch.stack([members.shared, members.strongest, members.entropy, members.rank.double()], dim=1)


def fit_charge(members: Members, iterations: int = 200) -> Calibration:
    """The rising map with the least quasi-Poisson deviance sum(mu - y log mu): predicted and measured totals agree."""
    later = members.later
    if len(later) < 20 or float(later.nats.sum()) <= 0:
        raise PairmiError(
            f"calibrate: {len(later)} positions were filled together with others and lost {float(later.nats.sum()):.2g} nats, too little "
            "to learn from; give more canvases or larger budgets"
        )
    logs, target = torch.log(features_of(later) + TINY), later.nats
    knots = [_knots(logs[:, n]) for n in range(len(FEATURES))]
    inputs = torch.cat([steps(logs[:, n], knots[n]) for n in range(len(FEATURES))], dim=1)
    with torch.enable_grad():
        bias = target.mean().log().clone().requires_grad_()
        raw = torch.full((inputs.shape[1],), -1.0, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.LBFGS([bias, raw], max_iter=iterations, history_size=20, line_search_fn="strong_wolfe")

        def loss() -> float:
            optimizer.zero_grad()
            rises = functional.softplus(raw)
            log_mu = bias + inputs @ rises
            value = (log_mu.exp() - target * log_mu).mean() / target.mean() + SHRINK * rises.sum()
            value.backward()
            return float(value.detach())

        optimizer.step(loss)
    rises = functional.softplus(raw).detach()
    level = target.mean() / (inputs @ rises).exp().mean()  # totals agree, whatever shrinking did
    parts = rises.split([len(k) - 1 for k in knots])
    return Calibration(float(level.log()), tuple(tuple(k.tolist()) for k in knots), tuple(tuple(p.tolist()) for p in parts))


def _knots(values: Float[Tensor, " M"]) -> Float[Tensor, " K"]:
    """Quantiles that differ; at least two."""
    some = values[:: max(1, len(values) // 100_000)]
    apart = [float(some.min())]
    for value in torch.quantile(some, torch.linspace(0, 1, KNOTS, dtype=torch.float64)).tolist():
        if value - apart[-1] > 0.05:
            apart.append(value)
    return torch.tensor(apart if len(apart) > 1 else [apart[0], apart[0] + 1], dtype=torch.float64)


def predicted(charge: Calibration, members: Members) -> Float[Tensor, " M"]:
    """The charge of every member."""
    return charge(members.shared, members.strongest, members.entropy, members.rank.double())


def calibrate(
    backbone: Backbone,
    canvases: Sequence[Int[Tensor, " L"]],
    mi: PairwiseMI,
    chosen: Chosen,
    budgets: Sequence[float],
    *,
    rounds: int = 4,
    seed: int = 0,
    batch_size: int = 256,
) -> Calibration:
    """Price the rule with pairwise charges, fit; price it with the fitted ones, on other draws, fit again to all.

    The rounds matter: a rule picks the sets whose charge is too low, so that a map must see the sets that it makes the rule choose.
    """
    watched, seen, charge = Watched(mi), list[Members](), None
    for number in range(rounds):
        rules = {f"{budget:g}": chosen(watched, charge, budget) for budget in budgets}
        found = measure(backbone, canvases, rules, seed=seed + number, batch_size=batch_size, watched=watched)
        seen += [price.members for price in found]
        charge = fit_charge(joined_members(seen))
    if charge is None:
        raise PairmiError(f"calibrate: rounds={rounds}: must be at least 1")
    return charge


def reliability(
    backbone: Backbone,
    canvases: Sequence[Int[Tensor, " L"]],
    mi: PairwiseMI,
    chosen: Chosen,
    charge: Calibration,
    budgets: Sequence[float],
    *,
    seed: int = 10_000,
    batch_size: int = 256,
) -> list[Reliability]:
    """What a calibrated rule predicts and loses a pass, on canvases or draws that the fit has not seen."""
    watched = Watched(mi)
    rules = {f"{budget:g}": chosen(watched, charge, budget) for budget in budgets}
    found = measure(backbone, canvases, rules, seed=seed, batch_size=batch_size, watched=watched)
    passes = [float(price.each_passes.sum()) for price in found]
    return [
        Reliability(budget, float(predicted(charge, price.members).sum()) / count, float(price.each.sum()) / count, price)
        for budget, price, count in zip(budgets, found, passes, strict=True)
    ]
