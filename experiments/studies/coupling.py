"""Fixed schedules with the least price in exact worlds, and what a learnt coupling costs beside a pass."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise, permutations

import torch
from torch import Tensor

from pairmi.backbones.tabular import Tabular
from pairmi.bench.stopwatch import Stopwatch, timed_passes
from pairmi.commit import Sampling
from pairmi.decoding import decode
from pairmi.mi.probed_tables import ProbedTables
from pairmi.model import Model
from pairmi.pricing.exact import exact_price
from pairmi.selectors.coupled import Coupled
from pairmi.spec import rule
from pairmi.types import Coupling, Meter, PairmiError, Prediction, Selection, Selector, State, Turn, Waiting

LIMITS = (1e-9, 0.1, 1.0)  # nats


@dataclass(frozen=True)
class Schedule:
    """Given sets in a given order, whatever the canvas says."""

    sets: tuple[tuple[int, ...], ...]

    def __call__(self, turn: Turn) -> Selection:
        """The first set that is still unknown."""
        order = torch.full_like(turn.prediction.tokens, -1)
        for mine in reversed(self.sets):
            unknown = turn.prediction.masked[:, mine[0]]
            ranks = torch.full_like(order[0], -1)
            ranks[list(mine)] = torch.arange(len(mine))
            order = torch.where(unknown[:, None], ranks, order)
        nothing = torch.zeros_like(order)
        return Selection(order >= 0, order, Waiting(nothing, nothing - 1, nothing.double()))


def schedules(length: int, passes: int, ordered: bool) -> Iterator[Schedule]:
    """All ways to fill so many positions in so many passes; with `ordered`, the order inside a set counts."""
    for order in permutations(range(length)):
        for cuts in combinations(range(1, length), passes - 1):
            ends = (0, *cuts, length)
            sets = tuple(order[a:b] for a, b in pairwise(ends))
            if ordered or all(list(part) == sorted(part) for part in sets):
                yield Schedule(sets)


def least(world: Tabular, passes: int, coupled: bool) -> float:
    """The least price of any fixed schedule of so many passes."""
    canvas, best = torch.full((world.length,), world.vocab.size), float("inf")
    for schedule in schedules(world.length, passes, coupled):
        selector: Selector = Coupled(schedule, ProbedTables()) if coupled else schedule
        best = min(best, exact_price(world, canvas, selector).nats)
        if best < LIMITS[0]:
            break
    return best


def best_passes(world: Tabular, coupled: bool) -> dict[str, float]:
    """The fewest passes of a fixed schedule at each limit."""
    prices = {passes: least(world, passes, coupled) for passes in range(1, world.length + 1)}
    return {f"{limit:.2g}": min(n for n, nats in prices.items() if nats <= limit) for limit in LIMITS}


def rule_passes(world: Tabular, coupled: bool) -> dict[str, float]:
    """The fewest passes of `mi-bound`, over its budgets and orders, at each limit; it looks at the canvas, so that they may be broken."""
    canvas, found = torch.full((world.length,), world.vocab.size), list[tuple[float, float]]()
    for budget in (0, 0.001, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1, 2, 4):
        for order in ("lowest-entropy", "highest-entropy", "information"):
            spec = f"mi-bound:mi=probe,floor=0,budget={budget},order={order}"
            priced = exact_price(world, canvas, rule(f"{spec},draw={'probed' if coupled else 'marginal'}", Model(world)))
            found.append((priced.nats, priced.passes))
    return {f"{limit:.2g}": min(passes for nats, passes in found if nats <= limit) for limit in LIMITS}


@dataclass(frozen=True)
class TimedCoupling:
    """A coupling under the watch."""

    inner: Coupling
    watch: Stopwatch

    def begin(self, prediction: Prediction, members: Tensor, backbone: Meter) -> State:
        """As the inner one."""
        with self.watch.during("coupling"):
            return self.inner.begin(prediction, members, backbone)

    def after(self, state: State, rank: Tensor, symbol: Tensor, backbone: Meter) -> State:
        """As the inner one."""
        with self.watch.during("coupling"):
            return self.inner.after(state, rank, symbol, backbone)

    def shifted(self, state: State, rank: Tensor) -> Tensor:
        """As the inner one."""
        with self.watch.during("coupling"):
            return self.inner.shifted(state, rank)


def cost_of_coupling(model: Model, spec: str, boards: int = 64) -> dict[str, float]:
    """Seconds of passes and of learnt tables in one decoding of boards from nothing, where they take turns."""
    if model.tables is None:
        raise PairmiError(f"cost: model {model.name!r} has no tables")
    watch = Stopwatch()
    selector = Coupled(rule(spec, model), TimedCoupling(model.tables, watch))
    canvases = torch.full((boards, model.length or 0), model.vocab.size)
    made = decode(timed_passes(model, watch), canvases, selector, Sampling(), batch_size=boards)
    passes = sum(one.passes for one in made) / boards
    seconds = {name: watch.seconds[name] for name in ("pass", "coupling")}
    return seconds | {"share": seconds["coupling"] / seconds["pass"], "members": canvases.shape[1] / passes, "boards": float(boards)}
