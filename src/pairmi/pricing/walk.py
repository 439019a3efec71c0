"""One-by-one decoding in a rule's own order, with what drawing each position at once with its set would have lost."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from pairmi.blocks import Window, leftmost
from pairmi.counting import Counting
from pairmi.deferring import Deferring
from pairmi.draw import Streams, tempered
from pairmi.info import entropy, kl, total_variation
from pairmi.model import device_of
from pairmi.selectors.wrappers import InBlocks
from pairmi.types import (
    Backbone,
    Coupling,
    Meter,
    PairmiError,
    PairwiseMI,
    PerRow,
    Places,
    Prediction,
    RowStreams,
    Selector,
    State,
    Tokens,
    Turn,
)

# A rule chooses an ordered set U = (k_1, ..., k_m) at a context C. At once draws k_n from p(. | C), one by one from
# p(. | C, x_k1 ... x_k(n-1)), and both ask the rule again when U is full. A rule does not see drawn symbols, so the contexts
# and sets on the way to a finished sequence x are a function of x (and of the rule's own noise), and both probabilities of x
# are products over the same (C, n). Hence log p_one(x) - log p_once(x) is a sum over them, and in the mean over x ~ p_one
#     KL(one by one || at once) = E sum over passes, sum over n of KL( p(. | C, x_k1 ... x_k(n-1)) || p(. | C) ),
# the inner mean being over x_kn. It is taken over the whole alphabet and not from the symbol drawn: less variance. Where at once draws
# k_n from a marginal that the members before it have shifted (a coupling), that stands in the place of p(. | C): a function of x too,
# so that one walk prices several ways of drawing on the same sets.


@dataclass(frozen=True)
class Members:
    """One entry for each filled position, by sequence, pass and rank; the features are what was known when its set was chosen."""

    sequence: Int[Tensor, " M"]  # its number
    turn: Int[Tensor, " M"]  # the pass that would have filled it
    rank: Int[Tensor, " M"]  # its place in the set; 0 = first, which loses nothing
    position: Int[Tensor, " M"]
    nats: Float[Tensor, " M"]  # KL(conditional || marginal), or what else it would be drawn from at once
    variation: Float[Tensor, " M"]  # total variation of the two: the chance that verification rejects it
    entropy: Float[Tensor, " M"]  # of the marginal
    shared: Float[Tensor, " M"]  # sum of its MI with the members before it; 0 unless pairs were watched
    strongest: Float[Tensor, " M"]  # the largest of these
    unknown: Int[Tensor, " M"]  # how many positions were unknown

    def __len__(self) -> int:
        return len(self.sequence)

    def pick(self, index: Shaped[Tensor, " N"]) -> "Members":
        """Some of the entries, by places or by a mask."""
        return Members(**{field.name: getattr(self, field.name)[index] for field in fields(self)})

    @property
    def later(self) -> "Members":
        """All but the first of each set."""
        return self.pick(self.rank > 0)


def joined_members(parts: list[Members]) -> Members:
    """Several lots as one, sorted, so that nothing depends on how sequences were batched."""
    whole = Members(**{field.name: torch.cat([getattr(part, field.name) for part in parts]) for field in fields(Members)})
    order = torch.arange(len(whole))
    for key in (whole.rank, whole.turn, whole.sequence):
        order = order[key[order].argsort(stable=True)]
    return whole.pick(order)


class Watched:
    """An estimate of MI that remembers its last answer, so that features cost no second look."""

    def __init__(self, mi: PairwiseMI) -> None:
        self.mi = mi
        self.last: Float[Tensor, "B L L"] | None = None

    def __call__(self, prediction: Prediction, backbone: Meter, rng: RowStreams) -> Float[Tensor, "B L L"]:
        """What the estimate says."""
        self.last = self.mi(prediction, backbone, rng)
        return self.last


def drawn(log_probs: Float[Tensor, "B V"], luck: Float[Tensor, " B"]) -> Int[Tensor, " B"]:
    """One symbol a row by inversion; rules that are priced on the same streams draw alike as long as they believe alike."""
    below = log_probs.exp().cumsum(-1)
    return (below < luck[:, None] * below[:, -1:]).sum(-1).clamp_max(log_probs.shape[-1] - 1)


Draws = Sequence[Coupling | None]  # ways to draw the members of a set: from their marginals, or by a coupling


@dataclass
class _Rows:
    """The unfinished rows: where each is in its set."""

    row: PerRow  # of the batch
    number: PerRow
    tokens: Tokens
    order: Int[Tensor, "B L"]
    taken: PerRow  # how many of its set are filled
    turn: PerRow
    luck: Float[Tensor, "B L"]
    seen: State  # by the pass that chose the set: its marginals, and its MI where pairs are watched
    state: State
    tables: list[State]  # what each coupling remembers of the sets

    def keep(self, index: Int[Tensor, " R"]) -> "_Rows":
        """The same for some of the rows."""
        plain = {field.name: value[index] for field in fields(self) if isinstance(value := getattr(self, field.name), Tensor)}
        seen, state, *tables = (_some(one, index) for one in (self.seen, self.state, *self.tables))
        return _Rows(**plain, seen=seen, state=state, tables=tables)


def _some(state: State, index: Int[Tensor, " R"]) -> State:
    """What is remembered of some of the rows."""
    return {name: value[index] for name, value in state.items()}


def _remembered(before: State, new: State, asking: Int[Tensor, " R"], count: int) -> State:
    """The memory of all rows after some of them were asked."""
    state = dict(before)
    for name, value in new.items():
        whole = state[name].clone() if name in state else value.new_zeros(count, *value.shape[1:])
        whole[asking] = value
        state[name] = whole
    return state


@dataclass(frozen=True)
class _Walk:
    """How rows are walked."""

    selector: Selector
    meter: Counting
    streams: Streams
    temperature: float
    watched: Watched | None
    draws: Draws
    places: Places  # of what is walked in its canvases
    probes: list[int]  # rows that the rule and each way of drawing evaluated, so far

    def start(self, whole: Tokens, turn: PerRow) -> _Rows:
        """The rows that have something unknown, after so many passes."""
        tokens = whole.gather(1, self.places)
        row = torch.nonzero((tokens == self.meter.vocab.size).any(1))[:, 0]
        self.meter.keep(row)
        luck = self.streams.uniform("price", whole.shape[1]).gather(1, self.places)[row]
        order, taken, nothing = torch.full_like(tokens[row], -1), torch.zeros_like(row), dict[str, Tensor]()
        tables: list[State] = [nothing for _ in self.draws]
        return _Rows(row, self.streams.index[row], tokens[row], order, taken, turn[row] - 1, luck, {}, {}, tables)

    def ask(self, rows: _Rows, asking: Int[Tensor, " R"], prediction: Prediction) -> None:
        """The next set of the rows whose last one is full; the rule's memory advances once a choice, as in decoding."""
        rows.turn[asking] += 1
        rng, count, who = Streams(self.streams.seed, rows.number[asking], rows.turn[asking]), len(rows.tokens), type(self.selector).__name__
        spent = self.meter.rows
        with self.meter.only(asking) as meter:
            selection, before = self.selector(Turn(prediction, meter, rng, _some(rows.state, asking))), meter.rows
            tables = list[State]()
            for n, draw in enumerate(self.draws):
                self.probes[n] += before - spent - meter.rows
                tables.append({} if draw is None else draw.begin(prediction, selection.members, meter))
                self.probes[n] += meter.rows
        ranks, every = torch.where(selection.chosen, selection.order, -1), torch.arange(rows.order.shape[1], device=asking.device)
        in_order = (ranks.sort(1, descending=True).values == (selection.chosen.sum(1, keepdim=True) - 1 - every).clamp_min(-1)).all(1)
        bad = ~selection.chosen.any(1) | (selection.chosen & ~prediction.masked).any(1) | ~in_order
        if bool(bad.any()):
            raise PairmiError(f"{who}: must choose at least one unknown position, no known one, ordered 0, 1, ...; in some row it did not")
        rows.order[asking], rows.taken[asking] = torch.where(selection.chosen, selection.order, -1), 0
        seen = {"marginal": prediction.log_probs}
        if self.watched is not None:
            if self.watched.last is None:
                raise PairmiError(f"{who}: does not look at pairs; calibrate a rule that does, such as mi-bound")
            seen["mi"] = self.watched.last.float()
        rows.seen = _remembered(rows.seen, seen, asking, count)
        rows.state = _remembered(rows.state, selection.state, asking, count)
        rows.tables = [_remembered(before, new, asking, count) for before, new in zip(rows.tables, tables, strict=True)]

    def fill(self, rows: _Rows, prediction: Prediction) -> list[Members]:
        """The next member of each row's set, drawn from its conditional; for each way of drawing what that would have lost."""
        every, rank = torch.arange(len(rows.tokens), device=rows.tokens.device), rows.taken.clone()
        member = (rows.order == rank[:, None]).long().argmax(1)
        conditional, marginal = prediction.log_probs[every, member].double(), rows.seen["marginal"][every, member]
        before = ((rows.order >= 0) & ~prediction.masked).double()  # members that are filled
        shared = rows.seen["mi"][every, member].double() * before if "mi" in rows.seen else torch.zeros_like(before)
        features = (entropy(marginal), shared.sum(1), shared.amax(1), prediction.masked.sum(1) + before.sum(1).long())
        conditional, found = tempered(conditional, self.temperature), list[Members]()
        for draw, state in zip(self.draws, rows.tables, strict=True):
            own = tempered((marginal if draw is None else draw.shifted(state, rank)).double(), self.temperature)
            lost = (torch.where(rank == 0, 0, of(conditional, own)) for of in (kl, total_variation))
            entry = (rows.number, rows.turn, rank, self.places[rows.row, member], *lost, *features)
            found.append(Members(*(value.clone().cpu() for value in entry)))
        symbol = drawn(conditional, rows.luck[every, member])
        rows.tokens[every, member] = symbol
        rows.taken += 1
        more = torch.nonzero(rows.order.amax(1) >= rows.taken)[:, 0]  # whose sets have a next member
        late = self.draws[0] if isinstance(self.draws[0], Deferring) else None
        more = more if late is None else every
        for n, draw in enumerate(self.draws):
            if draw is not None and len(more):
                self.probes[n] -= self.meter.rows
                with self.meter.only(more) as meter:
                    after = draw.after(_some(rows.tables[n], more), rank[more], symbol[more], meter)
                self.probes[n] += self.meter.rows
                rows.tables[n] = _remembered(rows.tables[n], after, more, len(rows.tokens))
        if late is not None:
            self.defer(rows, late, more)
        return found

    def defer(self, rows: _Rows, draw: Deferring, some: Int[Tensor, " R"]) -> None:
        """Whom the coupling draws next in each row; a set of which nobody is left that it would draw is full."""
        while len(some):
            asked = draw.judged(_some(rows.tables[0], some), (rows.order[some] >= 0).sum(1))
            rows.taken[some] = asked.rank
            rows.tables[0] = _remembered(rows.tables[0], asked.state, some, len(rows.tokens))
            full = asked.rank < 0
            rows.order[some[full]], rows.taken[some[full]] = -1, 0
            some = some[asked.waits & ~full]

    def run(self, whole: Tokens, turn: PerRow) -> list[list[Members]]:
        """Fill all of `places`, and count the passes, both in place; what was filled at each step."""
        rows, entries = self.start(whole, turn), list[list[Members]]()
        while len(rows.tokens):
            prediction = self.meter(rows.tokens)
            asking = torch.nonzero(rows.order.amax(1) < rows.taken)[:, 0]
            if len(asking):
                self.ask(rows, asking, prediction.rows(asking))
            entries.append(self.fill(rows, prediction))
            whole[rows.row] = whole[rows.row].scatter(1, self.places[rows.row], rows.tokens)
            turn[rows.row] = rows.turn + 1
            left = torch.nonzero((rows.tokens == self.meter.vocab.size).any(1))[:, 0]
            rows = rows.keep(left)
            self.meter.keep(left)
        return entries


def walk(
    backbone: Backbone,
    tokens: Tokens,
    selector: Selector,
    streams: Streams,
    temperature: float = 1.0,
    watched: Watched | None = None,
    draws: Draws = (None,),
) -> tuple[list[Members], list[int]]:
    """Fill canvases of one length one position at a time, one row a position; what was filled, and the rows that were spent on probes.

    `temperature` tempers what symbols are drawn from, and so both sides of the comparison; the rule sees the model's own beliefs.
    Both come once for each of `draws`: the same members, with what they lose if they are drawn in this way. A way that defers
    members changes the sets, and so must be alone.
    """
    if len(draws) > 1 and any(isinstance(draw, Deferring) for draw in draws):
        raise PairmiError("price: a way of drawing that defers members chooses its own sets; price it in a walk of its own")
    whole, mask, entries, probes = tokens.to(device_of(backbone)).clone(), backbone.vocab.size, list[list[Members]](), [0] * len(draws)
    streams, turn = replace(streams, index=streams.index.to(whole.device)), torch.zeros(len(whole), dtype=torch.long, device=whole.device)
    rule, block = (selector.rule, selector.block) if isinstance(selector, InBlocks) else (selector, whole.shape[1])
    if not bool((whole == mask).any()):
        raise PairmiError("price: every position of every canvas is given, nothing is unknown; mask what is to be decoded")
    with torch.no_grad():
        while bool((whole == mask).any()):  # block by block, as decoding goes; else once
            places = leftmost(whole, mask, block)
            meter = Counting(Window(backbone, whole.clone(), places) if rule is not selector else backbone)
            entries += _Walk(rule, meter, streams, temperature, watched, draws, places, probes).run(whole, turn)
    return [joined_members(list(parts)) for parts in zip(*entries, strict=True)], probes
