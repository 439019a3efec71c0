"""Fixed schedules with the least price in exact worlds; what learnt tables cost beside a pass, and how well they know MI."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, permutations
from time import process_time
from typing import Any

import torch
from sklearn.isotonic import IsotonicRegression
from torch import Tensor

from pairmi.backbones.tabular import Tabular
from pairmi.bench.fidelity import r2
from pairmi.bench.head import groups, predicted_by, scores
from pairmi.bench.head_cost import cost_records
from pairmi.commit import Sampling
from pairmi.counting import Counting
from pairmi.decoding import decode
from pairmi.deferring import Asked, Deferring
from pairmi.info import entropy_of, total_variation
from pairmi.mi.probed_tables import ProbedTables
from pairmi.mi.table import TableHead
from pairmi.model import Model
from pairmi.selectors.wrappers import Coupled
from pairmi.spec import estimate, rule
from pairmi.store import Labels
from pairmi.types import Coupling, Meter, PairmiError, PairwiseMI, Prediction, Selection, Selector, State, Turn, Waiting
from studies.exact_price import exact_price
from studies.stopwatch import Stopwatch, timed_passes
from studies.table_mi import TableMI

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


@dataclass(frozen=True)
class TimedDeferring(TimedCoupling):
    """One that defers, under the watch."""

    deferring: Deferring

    def judged(self, state: State, size: Tensor) -> Asked:
        """As the inner one."""
        with self.watch.during("coupling"):
            return self.deferring.judged(state, size)


def cost_of_coupling(model: Model, spec: str, canvases: Tensor, rounds: int = 4) -> dict[str, float]:
    """Seconds of passes and of learnt tables in a decoding of canvases by a coupled rule, where they take turns; the first only warms up."""
    selector, watch = rule(spec, model) if model.tables is not None else None, Stopwatch()
    if not isinstance(selector, Coupled):
        raise PairmiError(f"cost: model {model.name!r} has no tables, or {spec} draws by none")
    inner = selector.coupling
    timed = TimedDeferring(inner, watch, inner) if isinstance(inner, Deferring) else TimedCoupling(inner, watch)
    selector = Coupled(selector.rule, timed)
    boards = len(canvases)
    for turn in range(rounds):
        made = decode(timed_passes(model, watch), canvases, selector, Sampling(), batch_size=boards)
        if turn == 0:
            watch.seconds.clear()
    passes = sum(one.passes for one in made) / boards
    seconds = {name: watch.seconds[name] / (rounds - 1) for name in ("pass", "coupling")}
    return seconds | {
        "share": seconds["coupling"] / seconds["pass"],
        "members": float((canvases == model.vocab.size).sum()) / boards / passes,
        "boards": float(boards),
    }


def moved_by(model: Model, canvas: Tensor) -> dict[str, Any]:
    """How far the others move (total variation) when the most uncertain position takes its likeliest symbol: by exact and by learnt tables."""
    if model.tables is None:
        raise PairmiError(f"moved_by: model {model.name!r} has no tables")
    meter = Counting(model)
    prediction = meter(canvas[None])
    position = int(torch.where(prediction.masked[0], entropy_of(prediction)[0], -1).argmax())
    symbol = prediction.log_probs[0, position].argmax()
    others = torch.nonzero(prediction.masked[0])[:, 0]
    others = others[others != position]
    rows, one = prediction.rows(torch.zeros_like(others)), torch.ones_like(others)
    found = {"canvas": canvas.tolist(), "position": position, "symbol": int(symbol)}
    for name, coupling in (("exact", ProbedTables()), ("learnt", model.tables)):
        state = coupling.begin(rows, torch.stack([torch.full_like(others, position), others], dim=1), meter)
        state = coupling.after(state, one - 1, symbol.expand_as(others), meter)
        far = total_variation(coupling.shifted(state, one), prediction.log_probs[0, others])
        found[name] = torch.zeros(len(canvas), dtype=torch.float64).index_copy(0, others, far).tolist()
    return found


def seconds_a_board(model: Model, specs: Sequence[str], boards: int = 32, rounds: int = 3) -> dict[str, list[float]]:
    """CPU seconds a board from nothing, rules taking turns: a machine that is busy with something else disturbs all alike."""
    empty, found = [torch.full((model.length or 0,), model.vocab.size)] * boards, dict[str, list[float]]()
    for number in range(rounds):
        for spec in specs:
            begin = process_time()
            decode(model, empty, rule(spec, model), Sampling(number), batch_size=boards)
            found.setdefault(spec, []).append((process_time() - begin) / boards)
    return found


def fidelity_of_tables(model: Model, labels: Labels, costed: int = 32) -> dict[str, Any]:
    """How well tables and head know probed MI on the same states, over all and by where they come from, and their time over a pass."""
    assert isinstance(model.tables, TableHead)
    within, found = labels.known(model.vocab.size), dict[str, Any]()
    estimates: dict[str, PairwiseMI] = {"head": estimate("head", model), "tables": TableMI(model.tables)}
    for name, mi in estimates.items():
        values = predicted_by(mi, model, labels)
        found[name] = {
            group: scores(values[some], labels.mi[some], within[some], None)
            for group, some in groups(labels).items()
            if int(within[some].sum()) > 1
        }
    costs = cost_records({name: (model, mi) for name, mi in estimates.items()}, labels.tokens[:costed])
    return {"scores": found, "costs": {record["head"]: record for record in costs}}


def readings_of_tables(model: Model, labels: Labels, costed: int = 16) -> list[dict[str, Any]]:
    """Other ways to read MI from tables: fewer symbols, and any monotone function of what they say, fitted on the other half of the grids."""
    assert isinstance(model.tables, TableHead)
    within, lines = labels.known(model.vocab.size), list[dict[str, Any]]()
    half = torch.tensor([int(grid[-1], 16) % 2 == 0 for grid in labels.grid])[:, None].expand_as(within)[within]
    truth = labels.mi[within].double()
    ways: dict[str, PairwiseMI] = {f"tables, p(v) >= {least:g}": TableMI(model.tables, least) for least in (0.002, 0.05, 0.2)}
    for name, mi in {"head": estimate("head", model), **ways}.items():
        told, fitted = predicted_by(mi, model, labels)[within].double(), torch.zeros_like(truth)
        for side in (half, ~half):
            curve = IsotonicRegression(out_of_bounds="clip").fit(told[~side].numpy(), truth[~side].numpy())
            fitted[side] = torch.from_numpy(curve.predict(told[side].numpy()))
        share = cost_records({name: (model, mi)}, labels.tokens[:costed])[0]["time_share"]
        lines.append({"reading": name, "R2": r2(told, truth), "R2, any monotone function": r2(fitted, truth), "time over a pass": share})
    return lines
