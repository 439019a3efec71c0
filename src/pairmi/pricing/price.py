"""The price of a rule on a model: nats lost a sequence against one-by-one decoding in its own order, with its interval."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pairmi.blocks import checked_block
from pairmi.decoding import batches
from pairmi.deferring import Deferring
from pairmi.draw import Streams
from pairmi.pricing.interval import difference_interval, mean_interval, unseen_loss
from pairmi.pricing.walk import Members, Watched, joined_members, walk
from pairmi.selectors.wrappers import Coupled, InBlocks
from pairmi.types import Backbone, Coupling, PairmiError, Selector


@dataclass(frozen=True)
class Price:
    """What a rule loses on some sequences, and what it saves; means are over sequences."""

    rule: str
    nats: float
    interval: tuple[float, float]  # 95 %
    passes: float  # under the rule, on sequences that one-by-one decoding makes
    rows: float  # that pricing evaluated: one for each unknown position
    probe_rows: float  # that the rule itself spent on the backbone
    acceptance: float  # of the members of a draft but the first, if it were verified; 1 where there are none
    rejections: float  # the sum of their total variations: as many are rejected, each judged as if those before were accepted
    by_pass: tuple[float, ...]  # nats lost in each pass; adds up to `nats`
    by_position: tuple[float, ...]
    each: Float[Tensor, " S"]  # nats of each sequence
    each_passes: Float[Tensor, " S"]
    unknown: Float[Tensor, " S"]  # positions that were unknown
    unseen: float  # members of one set that an outcome which no sequence showed could move, see `movable`
    members: Members
    seed: int
    temperature: float

    def __repr__(self) -> str:
        return f"Price({self})"

    @property
    def tv_bound(self) -> float:
        """A bound on the total variation between the two distributions of sequences, by Pinsker's inequality."""
        return min(1.0, math.sqrt(self.nats / 2))

    @property
    def per_position(self) -> Float[Tensor, " S"]:
        """Nats of each sequence by the number of its unknown positions."""
        return self.each / self.unknown

    def against(self, other: "Price") -> tuple[float, float, float]:
        """The mean of ours - theirs on the same sequences, and its 95 % interval."""
        if len(self.each) != len(other.each) or self.seed != other.seed:
            raise PairmiError(f"price: {self.rule} and {other.rule} were priced on other sequences; price them in one call")
        gap = (self.each - other.each).numpy()
        return (float(gap.mean()), *difference_interval(gap, unseen=max(self.unseen, other.unseen)))

    def about(self) -> dict[str, Any]:
        """What a JSON document says of it."""
        names = ("rule", "nats", "passes", "rows", "probe_rows", "acceptance", "rejections", "tv_bound", "seed", "temperature")
        plain = {name: getattr(self, name) for name in names} | {"interval": list(self.interval), "sequences": len(self.each)}
        return plain | {"by_pass": list(self.by_pass), "by_position": list(self.by_position), "each": self.each.tolist()}

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.rule}: {self.nats:.3g} nats [{low:.3g}, {high:.3g}] a sequence in {self.passes:.1f} passes ({len(self.each)} sequences)"
        )


def measure(
    backbone: Backbone,
    canvases: Sequence[Int[Tensor, " _"]],
    rules: Mapping[str, Selector],
    *,
    seed: int = 0,
    temperature: float = 1.0,
    batch_size: int = 256,
    watched: Watched | None = None,
) -> list[Price]:
    """Price rules on the same canvases and streams, canvases of one length together; no result depends on the batch.

    Rules that differ in how they draw only are priced in one walk."""
    if not 0 < temperature < math.inf:
        raise PairmiError(f"price: temperature={temperature}: must be a number above 0")
    if batch_size < 1:
        raise PairmiError(f"price: batch_size must be >= 1, got {batch_size}")
    if not canvases or not rules:
        raise PairmiError(f"price: expected at least one canvas and one rule, got {len(canvases)} and {len(rules)}")
    found = dict[str, Price]()
    for selector, alike in _together(rules):
        if isinstance(selector, InBlocks):
            checked_block(selector.block, canvases)
        walked, probes = list[list[Members]](), [0] * len(alike)
        for part in batches(canvases, batch_size):
            tokens, streams = torch.stack([canvases[n] for n in part]), Streams(seed, torch.tensor(part))
            some, spent = walk(backbone, tokens, selector, streams, temperature, watched, list(alike.values()))
            walked.append(some)
            probes = [before + now for before, now in zip(probes, spent, strict=True)]
        for name, rows, *parts in zip(alike, probes, *walked, strict=True):
            found[name] = summed(name, joined_members(parts), len(canvases), rows, seed, temperature)
    return [found[name] for name in rules]


def _together(rules: Mapping[str, Selector]) -> list[tuple[Selector, dict[str, Coupling | None]]]:
    """Rules that choose alike and draw in different ways: one walk prices them all."""
    groups: list[tuple[Selector, dict[str, Coupling | None]]] = []
    for name, selector in rules.items():
        inner, coupling = _unwrapped(selector)
        for one, names in groups:
            if _alike(one, inner) and not any(isinstance(draw, Deferring) for draw in (coupling, *names.values())):
                names[name] = coupling
                break
        else:
            groups.append((inner, {name: coupling}))
    return groups


def _unwrapped(selector: Selector) -> tuple[Selector, Coupling | None]:
    """Who chooses, and how members are drawn: None = from their marginals."""
    if isinstance(selector, InBlocks):
        inner, coupling = _unwrapped(selector.rule)
        return InBlocks(inner, selector.block), coupling
    return (selector.rule, selector.coupling) if isinstance(selector, Coupled) else (selector, None)


def _alike(one: object, other: object) -> bool:
    """Whether two rules or their settings are the same, whatever they were made of: the same object, or equal part by part."""
    if one is other or type(one) is not type(other):
        return one is other
    if isinstance(one, int | float | str):
        return one == other
    return is_dataclass(one) and all(_alike(getattr(one, part.name), getattr(other, part.name)) for part in fields(one))


def movable(members: Members, count: int, temperature: float) -> float:
    """How many members of one set an outcome of probability 1 / `count` may move, each by `unseen_loss` nats in the mean: of the worst set.

    One outcome may move all members but the first at once. A member shares no more than its entropy, so who is surer than that counts for
    as much less. Below temperature 1 what is lost grows by up to 1 / temperature.
    """
    later = members.later
    if not len(later):
        return 0.0
    share = (later.entropy.double() / unseen_loss(count)).clamp_max(1) if count > 1 else torch.ones_like(later.nats, dtype=torch.float64)
    _, of = torch.unique(torch.stack([later.sequence, later.turn]), dim=1, return_inverse=True)
    worst = float(torch.zeros(int(of.max()) + 1, dtype=torch.float64).index_add(0, of, share).max())
    return max(1.0, worst) * max(1.0, 1 / temperature)


def summed(rule: str, members: Members, count: int, probe_rows: int, seed: int, temperature: float) -> Price:
    """The price from what happened to each position of `count` sequences."""

    def total(by: Tensor, values: Tensor, size: int) -> Float[Tensor, " N"]:
        return torch.zeros(size, dtype=torch.float64).index_add(0, by, values.double())

    each = total(members.sequence, members.nats, count)
    passes, unseen = total(members.sequence, members.rank == 0, count), movable(members, count, temperature)
    unknown = total(members.sequence, torch.ones_like(members.nats), count)
    tested = members.variation[members.rank > 0]
    by_pass = total(members.turn, members.nats, int(members.turn.max()) + 1) / count
    by_position = total(members.position, members.nats, int(members.position.max()) + 1) / count
    return Price(
        rule=rule,
        nats=float(each.mean()),
        interval=mean_interval(each.numpy(), unseen=unseen),
        passes=float(passes.mean()),
        rows=float(unknown.mean()),
        probe_rows=probe_rows / count,
        acceptance=1 - float(tested.mean()) if len(tested) else 1.0,
        rejections=float(tested.sum()) / count,
        by_pass=tuple(by_pass.tolist()),
        by_position=tuple(by_position.tolist()),
        each=each,
        each_passes=passes,
        unknown=unknown,
        unseen=unseen,
        members=members,
        seed=seed,
        temperature=temperature,
    )
