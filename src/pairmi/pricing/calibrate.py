"""Fit the map from what is known when a set is chosen to what its members really lose."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from pairmi.pricing.price import Price, measure
from pairmi.pricing.walk import Members, Watched, joined_members
from pairmi.selectors.charge import FEATURES, RISING, TINY, Calibration
from pairmi.types import Backbone, PairmiError, PairwiseMI, Selector

KNOTS = 6  # of each feature, at most
SHRINK = 1e-3  # pulls rises that the data say little of towards 0
MOST = 10  # times the mean, and at least a nat: larger losses say no more about what they depend on; they count in full for the level
STEEP = 50.0  # log nats: beyond any loss, and short of what overflows on the way to it
FEWEST = 8  # canvases that budgets are made true on
SLOPES = (0.5, 2.0)  # of log nats lost over log nats charged, in all
STEPS = (0.5, 6.0)  # and from one level to the next
BEND = 0.5  # how much such a slope changes, as a guess
EFFECTIVE = 4.0  # (mean / standard error) ** 2 of a loss: about how many sequences have made it

Chosen = Callable[[PairwiseMI, Calibration | None, float], Selector]  # the rule of an estimate, a charge (None = pairwise) and a budget


class NothingLost(PairmiError):
    """There is too little to learn a charge from."""


@dataclass(frozen=True)
class Reliability:
    """Asked, charged and lost nats a pass, at one budget."""

    budget: float  # that was asked for
    predicted: float  # by the charges, of which a pass may spend `allowed`
    measured: float
    error: float  # of `measured`: one standard error, over sequences
    price: Price


def features_of(members: Members) -> Float[Tensor, "M 5"]:
    """What a charge looks at, in the order of `FEATURES`."""
    return torch.stack([members.shared, members.strongest, members.entropy, members.rank.double(), members.unknown.double()], dim=1)


def fit_charge(members: Members, iterations: int = 200) -> Calibration:
    """The map with the least quasi-Poisson deviance sum(mu - y log mu), rising in all of `RISING`: predicted and measured totals agree.

    A sequence that the model itself has made impossible loses much wherever it is: losses are cut off at `MOST` to find the shape.
    """
    later = members.later
    if len(later) < 20 or float(later.nats.sum()) <= 0:
        raise NothingLost(
            f"calibrate: {len(later)} positions were filled together with others and lost {float(later.nats.sum()):.2g} nats, too little "
            "to learn from; give more canvases or larger budgets"
        )
    logs, target = torch.log(features_of(later) + TINY), later.nats.clamp_max(max(1.0, MOST * float(later.nats.mean())))
    knots = [_knots(logs[:, n], target + target.mean()) for n in range(len(FEATURES))]
    inputs = torch.cat([((logs[:, n, None] - k[:-1]) / k.diff()).clamp(0, 1) for n, k in enumerate(knots)], dim=1)
    free = torch.cat([torch.full((len(k) - 1,), name not in RISING) for name, k in zip(FEATURES, knots, strict=True)])
    with torch.enable_grad():
        bias = target.mean().log().clone().requires_grad_()
        raw = torch.where(free, 0.0, -1.0).double().requires_grad_()
        optimizer = torch.optim.LBFGS([bias, raw], max_iter=iterations, history_size=20, line_search_fn="strong_wolfe")

        def loss() -> float:
            optimizer.zero_grad()
            rises = torch.where(free, raw, functional.softplus(raw))
            log_mu = (bias + inputs @ rises).clamp_max(STEEP)
            value = (log_mu.exp() - target * log_mu).mean() / target.mean() + SHRINK * rises.abs().sum()
            value.backward()
            return float(value.detach())

        optimizer.step(loss)
    rises = torch.where(free, raw, functional.softplus(raw)).detach()
    if not bool(torch.isfinite(rises).all()):  # the search got lost, as it may over a few members: what they lose in the mean, for all
        rises = torch.zeros_like(rises)
    level = later.nats.mean() / (inputs @ rises).exp().mean()  # totals agree, whatever shrinking and cutting did
    parts = rises.split([len(k) - 1 for k in knots])
    return Calibration(float(level.log()), tuple(tuple(k.tolist()) for k in knots), tuple(tuple(p.tolist()) for p in parts))


def _knots(values: Float[Tensor, " M"], weights: Float[Tensor, " M"]) -> Float[Tensor, " K"]:
    """Weighted quantiles that differ, at least two: half of the weight goes by what is lost, which few members lose most of."""
    order = values.argsort()
    below = weights[order].cumsum(0) / weights.sum()
    apart = [float(values[order[0]])]
    for place in torch.searchsorted(below, torch.linspace(0, 1, KNOTS, dtype=torch.float64)[1:]).clamp_max(len(values) - 1).tolist():
        value = float(values[order[place]])
        if value - apart[-1] > 0.05:
            apart.append(value)
    return torch.tensor(apart if len(apart) > 1 else [apart[0], apart[0] + 1], dtype=torch.float64)


def fit_budget(charge: Calibration, found: Iterable[tuple[float, float, float]]) -> Calibration:
    """The charge whose `allowed` makes budgets true, from what passes might spend, what they lost in the mean, and its standard error.

    A curve through the logarithms that bends no more than need be, and the line through all of them for what lies beyond. Each point is
    weighted by how well it is known, for a few sequences lose most; what a sequence or two have lost says nothing.
    """
    points = [(math.log(a), math.log(m), (m / max(e, 1e-3 * m)) ** 2) for a, m, e in sorted(found) if m > 0]
    points = [point for point in points if point[2] >= EFFECTIVE] or points
    if not points:
        return charge
    x, y, weight = torch.tensor(points, dtype=torch.float64).T
    share = weight / weight.sum()
    middle, spread = (share * x).sum(), (share * (x - (share * x).sum()).square()).sum()
    slope = 1.0 if float(spread) < 1e-6 else float((share * (x - middle) * y).sum() / spread)
    slope = min(max(slope, SLOPES[0]), SLOPES[1])
    line = replace(charge, slope=slope, offset=float((share * y).sum() - slope * middle), levels=())
    if len(points) < 3:
        return line
    gap, count = x.diff(), len(points)
    slopes = (torch.eye(count, dtype=torch.float64)[1:] - torch.eye(count, dtype=torch.float64)[:-1]) / gap[:, None]
    bends = slopes.diff(dim=0) / BEND
    smooth = torch.linalg.solve(torch.diag(weight) + bends.T @ bends, weight * y)
    rises = (slopes @ smooth).clamp(*STEPS) * gap
    level = torch.cat([torch.zeros(1, dtype=torch.float64), rises.cumsum(0)])
    level = level + (share * (y - level)).sum()
    return replace(line, levels=tuple(zip(x.tolist(), level.tolist(), strict=True)))


def predicted(charge: Calibration, members: Members) -> Float[Tensor, " M"]:
    """The charge of every member."""
    return charge(features_of(members))


def calibrate(
    backbone: Backbone,
    canvases: Sequence[Int[Tensor, " _"]],
    mi: PairwiseMI,
    chosen: Chosen,
    budgets: Sequence[float],
    *,
    rounds: int = 4,
    seconds: float = math.inf,
    seed: int = 0,
    batch_size: int = 256,
) -> Calibration:
    """Price the rule with pairwise charges, fit; price it with the fitted ones, on other draws, fit again to all; last make budgets true.

    The rounds matter: a rule picks the sets whose charge is too low, so that a map must see the sets that it makes the rule choose.
    Where so many would take more than these seconds, there are fewer, at least two, and fewer canvases in the last.
    """
    if rounds < 2:
        raise PairmiError(f"calibrate: rounds={rounds}: must be at least 2")
    watched, seen, charge, began, each = Watched(mi), list[Members](), None, time.monotonic(), 0.0
    for number in range(rounds - 1):
        if number and time.monotonic() - began + 2 * each > seconds:
            break
        last = time.monotonic()
        rules = {f"{budget:g}": chosen(watched, charge, budget) for budget in budgets}
        seen += [price.members for price in measure(backbone, canvases, rules, seed=seed + number, batch_size=batch_size, watched=watched)]
        charge = fit_charge(joined_members(seen))
        each = time.monotonic() - last
    assert charge is not None
    left = (seconds - time.monotonic() + began) / max(each, 1e-6)
    some = canvases[: max(FEWEST, int(min(left, 1.0) * len(canvases)))]
    found = reliability(backbone, some, mi, chosen, charge, budgets, seed=seed + rounds - 1, batch_size=batch_size)
    return fit_budget(charge, [(one.budget, one.measured, one.error) for one in found])


def reliability(
    backbone: Backbone,
    canvases: Sequence[Int[Tensor, " _"]],
    mi: PairwiseMI,
    chosen: Chosen,
    charge: Calibration,
    budgets: Sequence[float],
    *,
    seed: int = 10_000,
    batch_size: int = 256,
) -> list[Reliability]:
    """What a calibrated rule charges and loses a pass, on canvases or draws that the fit has not seen."""
    watched = Watched(mi)
    rules = {f"{budget:g}": chosen(watched, charge, budget) for budget in budgets}
    found = measure(backbone, canvases, rules, seed=seed, batch_size=batch_size, watched=watched)
    return [_reliable(charge, budget, price) for budget, price in zip(budgets, found, strict=True)]


def _reliable(charge: Calibration, budget: float, price: Price) -> Reliability:
    passes = float(price.each_passes.sum())
    measured = float(price.each.sum()) / passes
    error = float((price.each - measured * price.each_passes).square().sum().sqrt()) / passes  # of a ratio of means
    return Reliability(budget, float(predicted(charge, price.members).sum()) / passes, measured, error, price)
