"""One-by-one decoding in a rule's own order, with what drawing each position at once with its set would have lost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from pairmi.counting import Counting
from pairmi.draw import Streams, tempered
from pairmi.info import entropy, kl, total_variation
from pairmi.model import device_of
from pairmi.types import (
    Backbone,
    Coupling,
    Meter,
    PairMatrix,
    PairmiError,
    PairwiseMI,
    PerRow,
    Prediction,
    RowStreams,
    Selection,
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
        self.last: PairMatrix | None = None

    def __call__(self, prediction: Prediction, backbone: Meter, rng: RowStreams) -> PairMatrix:
        """What the estimate says."""
        self.last = self.mi(prediction, backbone, rng)
        return self.last


@dataclass(frozen=True)
class _OwnTurns:
    """Streams of rows that are at different passes, the same numbers as in decoding."""

    streams: Streams
    turns: PerRow

    def uniform(self, purpose: str, *shape: int) -> Float[Tensor, "B ..."]:
        out = torch.empty(len(self.turns), *shape, dtype=torch.float64, device=self.turns.device)
        for turn in self.turns.unique().tolist():
            some = torch.nonzero(self.turns == turn)[:, 0]
            out[some] = self.streams.rows(some).at(turn).uniform(purpose, *shape)
        return out


def drawn(log_probs: Float[Tensor, "B V"], luck: Float[Tensor, " B"]) -> Int[Tensor, " B"]:
    """One symbol a row by inversion; rules that are priced on the same streams draw alike as long as they believe alike."""
    below = log_probs.exp().cumsum(-1)
    return (below < luck[:, None] * below[:, -1:]).sum(-1).clamp_max(log_probs.shape[-1] - 1)


@dataclass
class _Rows:
    """The unfinished rows: where each is in its set. Its marginals, and MI if watched, are those of the pass that chose the set."""

    number: PerRow
    tokens: Tokens
    order: Int[Tensor, "B L"]
    taken: PerRow  # how many of its set are filled
    turn: PerRow
    marginal: Float[Tensor, "B L V"]
    mi: Float[Tensor, "B K K"]  # K = L if pairs are watched, else 0
    luck: Float[Tensor, "B L"]
    state: State
    tables: list[State]  # what each coupling remembers of the sets

    def keep(self, index: Int[Tensor, " R"]) -> "_Rows":
        """The same for some of the rows."""
        plain = {f.name: getattr(self, f.name)[index] for f in fields(self) if f.name not in ("state", "tables")}
        return replace(self, **plain, state=_some(self.state, index), tables=[_some(state, index) for state in self.tables])


def _some(state: State, index: Int[Tensor, " R"]) -> State:
    """What is remembered of some of the rows."""
    return {name: value[index] for name, value in state.items()}


Draws = Sequence[Coupling | None]  # ways to draw the members of a set: from their marginals, or by a coupling


def walk(
    backbone: Backbone,
    tokens: Tokens,
    selector: Selector,
    streams: Streams,
    temperature: float = 1.0,
    watched: Watched | None = None,
    draws: Draws = (None,),
) -> tuple[list[Members], int]:
    """Fill canvases of one length one position at a time, one row a position; what was filled, and the rows that were spent on probes.

    `temperature` tempers what symbols are drawn from, and so both sides of the comparison; the rule sees the model's own beliefs.
    What was filled comes once for each of `draws`: the same members, with what they lose if they are drawn in this way.
    """
    meter, mask, tokens = Counting(backbone), backbone.vocab.size, tokens.to(device_of(backbone))
    streams = Streams(streams.seed, streams.index.to(tokens.device), streams.turn)
    entries: list[list[Members]] = [[] for _ in draws]
    probes = 0
    with torch.no_grad():
        rows = _start(tokens, mask, streams, watched is not None, len(draws))
        while len(rows.tokens):
            prediction = meter(rows.tokens)
            asking, spent = torch.nonzero(rows.order.amax(1) < rows.taken)[:, 0], meter.rows
            if len(asking):
                _ask(rows, asking, prediction, selector, meter, streams, watched, draws)
            for into, entry in zip(entries, _fill(rows, prediction, temperature, draws, meter), strict=True):
                into.append(entry)
            probes += meter.rows - spent
            rows = rows.keep(torch.nonzero((rows.tokens == mask).any(1))[:, 0])
    return [joined_members(parts) for parts in entries], probes


def _start(tokens: Tokens, mask: int, streams: Streams, watching: bool, draws: int) -> _Rows:
    number, length = torch.nonzero((tokens == mask).any(1))[:, 0], tokens.shape[1]
    if not len(number):
        raise PairmiError("price: every position of every canvas is given, nothing is unknown; mask what is to be decoded")
    tokens, nothing = tokens[number].clone(), torch.zeros_like(number)
    side = length if watching else 0
    marginal, mi = (torch.zeros(len(number), a, b, device=tokens.device) for a, b in ((length, mask), (side, side)))
    luck = streams.rows(number).uniform("price", length)
    return _Rows(
        streams.index[number], tokens, torch.full_like(tokens, -1), nothing, nothing - 1, marginal, mi, luck, {}, [{} for _ in range(draws)]
    )


def _ask(
    rows: _Rows,
    asking: Int[Tensor, " R"],
    prediction: Prediction,
    selector: Selector,
    meter: Meter,
    streams: Streams,
    watched: Watched | None,
    draws: Draws,
) -> None:
    """The next set of the rows whose last one is full; the rule's memory advances once a choice, as in decoding."""
    rows.turn[asking] += 1
    seen = prediction.rows(asking)
    rng = _OwnTurns(Streams(streams.seed, rows.number[asking]), rows.turn[asking])
    selection = selector(Turn(seen, meter, rng, {name: value[asking] for name, value in rows.state.items()}))
    _check(selector, selection, seen)
    rows.order[asking], rows.taken[asking] = torch.where(selection.chosen, selection.order, -1), 0
    if rows.marginal.dtype != seen.log_probs.dtype:
        rows.marginal = rows.marginal.to(seen.log_probs.dtype)
    rows.marginal[asking] = seen.log_probs
    if watched is not None:
        if watched.last is None:
            raise PairmiError(f"{type(selector).__name__}: does not look at pairs; calibrate a rule that does, such as mi-bound")
        rows.mi[asking] = watched.last.to(rows.mi.dtype)
    rows.state = _remembered(rows.state, selection.state, asking, len(rows.tokens))
    members = torch.where(selection.chosen, selection.order, seen.tokens.shape[1]).argsort(dim=1, stable=True)
    for n, draw in enumerate(draws):
        if draw is not None:
            rows.tables[n] = _remembered(rows.tables[n], draw.begin(seen, members, meter), asking, len(rows.tokens))


def _remembered(before: Mapping[str, Tensor], new: Mapping[str, Tensor], asking: Int[Tensor, " R"], count: int) -> dict[str, Tensor]:
    """The memory of all rows after some of them were asked."""
    state = dict(before)
    for name, value in new.items():
        whole = state[name].clone() if name in state else value.new_zeros(count, *value.shape[1:])
        whole[asking] = value
        state[name] = whole
    return state


def _check(selector: Selector, selection: Selection, prediction: Prediction) -> None:
    bad = ~selection.chosen.any(1) | (selection.chosen & ~prediction.masked).any(1)
    if bool(bad.any()):
        raise PairmiError(f"{type(selector).__name__}: must choose at least one unknown position, and no known one; it did not in some row")


def _fill(rows: _Rows, prediction: Prediction, temperature: float, draws: Draws, meter: Meter) -> list[Members]:
    """The next member of each row's set, drawn from its conditional; for each way of drawing what that would have lost."""
    every, rank = torch.arange(len(rows.tokens), device=rows.tokens.device), rows.taken.clone()
    member = (rows.order == rank[:, None]).long().argmax(1)
    conditional, marginal = prediction.log_probs[every, member].double(), rows.marginal[every, member]
    before = (rows.order >= 0) & (rows.order < rank[:, None])
    shared = rows.mi[every, member].double() * before if rows.mi.shape[1] else torch.zeros_like(before, dtype=torch.float64)
    features = (entropy(marginal), shared.sum(1), shared.amax(1), prediction.masked.sum(1) + rank)
    conditional, found = tempered(conditional, temperature), list[Members]()
    for draw, state in zip(draws, rows.tables, strict=True):
        own = tempered((marginal if draw is None else draw.shifted(state, rank)).double(), temperature)
        lost = (torch.where(rank == 0, 0, of(conditional, own)) for of in (kl, total_variation))
        entry = (rows.number, rows.turn, rank, member, *lost, *features)
        found.append(Members(*(value.clone().cpu() for value in entry)))
    symbol = drawn(conditional, rows.luck[every, member])
    rows.tokens[every, member] = symbol
    rows.taken += 1
    more = torch.nonzero(rows.order.amax(1) >= rows.taken)[:, 0]  # whose sets have a next member
    for n, draw in enumerate(draws):
        if draw is not None and len(more):
            after = draw.after(_some(rows.tables[n], more), rank[more], symbol[more], meter)
            rows.tables[n] = _remembered(rows.tables[n], after, more, len(rows.tokens))
    return found
