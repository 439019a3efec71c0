"""Symbols that are drawn together, and two ways to commit them: as they are, or as a draft that is verified (speculative sampling)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pairmi.counting import Counting
from pairmi.deferring import WAITS, Asked, Deferring, ask
from pairmi.draw import Streams, draw, tempered
from pairmi.info import PIECE, mass
from pairmi.types import Coupling, PairmiError, PerRow, Positions, Prediction, Ranks, Reason, Selection, Tokens, Waiting


@dataclass(frozen=True)
class Draft:
    """A rule's choice with a symbol for each chosen position; the sizes are known on the host, all else lives with the model."""

    tokens: Tokens  # before
    order: Ranks  # -1 = not chosen
    members: Ranks  # the chosen positions of each row in their order, then all others
    symbols: Tokens  # the drawn symbols where chosen, else what was there
    sizes: Sequence[int]  # how many are chosen in each row
    left: Sequence[int]  # how many are unknown
    beliefs: Float[Tensor, "B M V"] | None = None  # what each member was drawn from, by rank, before tempering; None = the marginals

    def drawn_from(self, prediction: Prediction, rows: Int[Tensor, " N"], ranks: Int[Tensor, " N"]) -> Float[Tensor, "N V"]:
        """The distributions that some members were drawn from."""
        return prediction.log_probs[rows, self.members[rows, ranks]] if self.beliefs is None else self.beliefs[rows, ranks]


@dataclass(frozen=True)
class Sampling:
    """How symbols are drawn and committed."""

    seed: int = 0
    temperature: float = 1.0
    greedy: bool = False
    verify: bool = False
    accept: float = 0.999  # greedy verification: how sure the conditional must be of a draft
    stop: int | None = None  # the symbol that ends a sequence: a row is finished when all left of it is known

    def __post_init__(self) -> None:
        if not 0 <= self.accept <= 1:
            raise PairmiError(f"accept={self.accept}: must be a probability between 0 and 1")
        if not 0 < self.temperature < float("inf"):
            raise PairmiError(f"temperature={self.temperature}: must be a number above 0; for the likeliest symbol use greedy")
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**63:
            raise PairmiError(f"seed={self.seed!r}: must be a whole number (int) from 0 to 2^63 - 1")

    def ended(self, tokens: Tokens, given: Positions, mask: int) -> Positions:
        """Where a sequence ends: a symbol `stop` that was not given, behind nothing unknown."""
        known = (tokens == mask).cumsum(1) == 0
        return known & ~given & (tokens == self.stop) if self.stop is not None else torch.zeros_like(given)


def drawn_together(
    meter: Counting, selection: Selection, coupling: Coupling, draft: Draft, prediction: Prediction, rng: Streams, sampling: Sampling
) -> tuple[Selection, Draft]:
    """A symbol for every chosen position that does not wait, one after the other, each from its marginal shifted by those before it."""
    device, size, most = draft.tokens.device, prediction.log_probs.shape[2], max(draft.sizes)
    symbols, sizes = draft.tokens.clone(), torch.tensor(draft.sizes, device=device)
    state, defers = coupling.begin(prediction, draft.members[:, :most], meter), isinstance(coupling, Deferring)
    rows, going, beliefs = list(range(len(symbols))), torch.arange(len(symbols), device=device), list[tuple[Tensor, Tensor, Tensor]]()
    order, count = torch.full_like(draft.order, -1), torch.zeros_like(going)
    doubt, number = torch.zeros_like(selection.waiting.amount), 0
    asked = Asked(state, torch.zeros_like(going), prediction.log_probs[going, draft.members[:, 0]], going < 0, doubt[:, 0].clone())
    while rows:
        place, own = draft.members[going, asked.rank], asked.log_q
        symbol = own.argmax(-1) if sampling.greedy else draw(tempered(own, sampling.temperature), rng, going, place * size, "draw")
        if sampling.verify:
            beliefs.append((going, count[going], own))  # of who waits, until the next one's stand there
        symbols[going, place] = symbols[going, place].where(asked.waits, symbol)
        order[going, place], doubt[going, place] = count[going].where(~asked.waits, -1), asked.doubt.to(doubt)
        count[going] += ~asked.waits
        number += 1
        more = [n for n, row in enumerate(rows) if defers or draft.sizes[row] > number]
        if not more:
            break
        rows, going, asked = _rest(rows, going, asked, more)
        symbol = symbol if len(more) == len(symbol) else symbol[torch.tensor(more, device=device)]
        with meter.only(going):
            state = coupling.after(asked.state, asked.rank, symbol.where(~asked.waits, WAITS), meter)
        asked = ask(coupling, state, number, sizes[going])
        if defers:
            rows, going, asked = _rest(rows, going, asked, torch.nonzero(asked.rank >= 0)[:, 0].tolist())
    drawn_from = None
    if beliefs:
        drawn_from = beliefs[-1][2].new_zeros(len(symbols), most, size)
        for who, at, own in beliefs:
            drawn_from[who, at] = own.to(drawn_from)
    draft = replace(draft, symbols=symbols, beliefs=drawn_from)
    return _deferred(selection, draft, order, count, doubt) if defers else (selection, draft)


def _rest(rows: list[int], going: Tensor, asked: Asked, some: list[int]) -> tuple[list[int], Tensor, Asked]:
    """Without the rows whose sets are drawn."""
    if len(some) == len(rows):
        return rows, going, asked
    index = torch.tensor(some, dtype=torch.long, device=going.device)
    return [rows[n] for n in some], going[index], asked.rows(index)


def _deferred(selection: Selection, draft: Draft, order: Ranks, count: PerRow, doubt: Tensor) -> tuple[Selection, Draft]:
    """The members that were drawn, in this order; the others wait for a later pass."""
    late, told = (draft.order >= 0) & (order < 0), selection.waiting
    told = Waiting(told.reason.masked_fill(late, Reason.BUDGET), told.blocker.masked_fill(late, -1), torch.where(late, doubt, told.amount))
    selection = replace(selection, chosen=selection.chosen & ~late, order=order, waiting=told)
    return selection, replace(draft, order=order, members=selection.members, sizes=count.tolist())


@dataclass(frozen=True)
class Verified:
    """What verification leaves of a draft: the accepted prefix, perhaps one redrawn symbol, and the next prediction where it is known."""

    tokens: Tokens
    committed: Positions
    accepted: PerRow  # members of the draft that were right
    upcoming: Prediction | None  # of the rows that were evaluated as they now are; garbage in the others
    needed: Sequence[int]  # rows evaluated for each canvas


def acceptance(conditional: Float[Tensor, "*N V"], marginal: Float[Tensor, "*N V"]) -> Float[Tensor, "*N V"]:
    """min(1, p_conditional(x) / p_marginal(x)) of every symbol a draft may have, from log-probabilities."""
    ratio = torch.where(marginal > -torch.inf, conditional.double() - marginal.double(), 0)
    return ratio.clamp_max(0).exp()


def residual(conditional: Float[Tensor, "*N V"], marginal: Float[Tensor, "*N V"]) -> Float[Tensor, "*N V"]:
    """The positive part of p_conditional - p_marginal, not normalised: what a rejected draft is redrawn from.

    marginal * acceptance + residual = conditional, symbol by symbol: that is why verified decoding is exact. Where rounding
    leaves no positive part, the conditional itself.
    """
    excess = (conditional.double().exp() - marginal.double().exp()).clamp_min(0)
    return torch.where(excess.sum(-1, keepdim=True) > 0, excess, conditional.double().exp())


def certain(conditional: Float[Tensor, "*N V"], draft: Int[Tensor, "*N"], accept: float) -> Bool[Tensor, "*N"]:
    """The greedy test: the draft is the conditional's likeliest symbol and has at least this probability."""
    sure = conditional.gather(-1, draft[..., None])[..., 0].double().exp() >= accept
    return sure & (conditional.argmax(-1) == draft)


def verified(meter: Counting, prediction: Prediction, draft: Draft, rng: Streams, sampling: Sampling) -> Verified:
    """Check the draft against the conditionals, all prefixes in one call; commit what follows the distribution of sequential decoding.

    Row n of a canvas holds its first n chosen symbols, and so predicts the next. The first symbol is always right.
    Sampling: the first rejected symbol is redrawn from the residual, and every symbol is distributed as a draw from its conditional.
    Greedy: accept while the draft is the likeliest symbol with at least `accept`, leave the rest open. A prefix that fills its canvas up
    needs no row. Of the prefixes' predictions one a canvas is kept (sampling: that of the whole drafts, which are evaluated last), and a
    distribution a prefix is looked at: memory does not grow with the draft.
    """
    device, greedy, length = draft.tokens.device, sampling.greedy, draft.tokens.shape[1]
    needed = [size - (size == left) for size, left in zip(draft.sizes, draft.left, strict=True)]  # prefixes 1..needed
    whole = [] if greedy else [row for row, (size, count) in enumerate(zip(draft.sizes, needed, strict=True)) if count == size]
    asked = [(row, prefix) for row, count in enumerate(needed) for prefix in range(1, count + 1) if greedy or prefix < draft.sizes[row]]
    asked += [(row, draft.sizes[row]) for row in whole]
    owner, prefix = torch.tensor(asked, dtype=torch.long, device=device).view(-1, 2).unbind(1)
    member, sizes = draft.members[owner, prefix.clamp_max(length - 1)], torch.tensor(draft.sizes, device=device)
    accepted, correction = sizes.clone(), draft.symbols.clone()
    upcoming = _room(prediction) if greedy and asked else None
    looked_at = None if greedy else member[:, None]
    pieces = meter.pieces(_prefixed(draft, owner, prefix), len(sizes), owner, len(whole), looked_at) if asked else ()
    for where, ahead in pieces:
        if whole and where.stop == len(asked):  # only whole drafts leave a context that has been evaluated
            upcoming = ahead if len(whole) == len(sizes) else _placed(ahead, owner[where], prediction)
            break
        tests = [n for n, (row, count) in enumerate(asked[where]) if count < draft.sizes[row]]
        if tests:
            mine = torch.tensor(tests, device=device)
            who, at, to = owner[where][mine], prefix[where][mine], member[where][mine]
            both = ahead.log_probs[mine, to] if greedy else ahead.log_probs[:, 0], draft.drawn_from(prediction, who, at)
            meter.watch(mass(both[0]), both[0].dtype)
            good, redrawn = _judged(*both, draft.symbols[who, to], (who, to), rng, sampling)
            del both  # as below
            accepted = accepted.scatter_reduce(0, who, torch.where(good, length, at), "amin")
            correction[who, to] = torch.where(at == accepted[who], redrawn, correction[who, to])
        if upcoming is not None:  # any prefix may be the one that is committed
            right = prefix[where] == accepted[owner[where]]
            if device.type != "cpu" or bool(right.any()):  # elsewhere looking would mean waiting
                _keep(upcoming, ahead, owner[where], right, sorted({row for row, _ in asked[where]}))
        del ahead  # before the next piece is evaluated
    stale = (accepted < sizes) & (not greedy)  # a redrawn symbol makes the context new
    committed = (draft.order >= 0) & (draft.order < (accepted + stale)[:, None])
    return Verified(torch.where(committed, correction, draft.tokens), committed, accepted, upcoming, needed)


def _prefixed(draft: Draft, owner: Int[Tensor, " N"], prefix: Int[Tensor, " N"]) -> Int[Tensor, "N L"]:
    """The canvases with the first few members of their drafts filled in."""
    order = draft.order[owner]
    return torch.where((order >= 0) & (order < prefix[:, None]), draft.symbols[owner], draft.tokens[owner])


def _judged(
    conditional: Float[Tensor, "T V"],
    marginal: Float[Tensor, "T V"],
    symbol: Int[Tensor, " T"],
    where: tuple[Int[Tensor, " T"], Int[Tensor, " T"]],
    rng: Streams,
    sampling: Sampling,
) -> tuple[Bool[Tensor, " T"], Int[Tensor, " T"]]:
    """Whether each symbol is accepted, and what stands in its place if it is the first that is not."""
    if sampling.greedy:
        return certain(conditional, symbol, sampling.accept), symbol
    conditional, marginal = (tempered(x, sampling.temperature) for x in (conditional, marginal))
    chance = acceptance(*(x.gather(1, symbol[:, None])[:, 0] for x in (conditional, marginal)))
    good = rng.uniform_at("accept", *where) < chance
    bad = torch.nonzero(~good)[:, 0] if good.device.type == "cpu" else torch.arange(len(good), device=good.device)  # where looking is free
    redrawn = draw(residual(conditional[bad], marginal[bad]).log(), rng, where[0][bad], torch.zeros_like(bad), "residual")
    return good, symbol.index_put((bad,), redrawn)


def _room(prediction: Prediction) -> Prediction:
    """Room for a prediction of the same canvases, without their entropies."""
    attention = None if prediction.attention is None else torch.empty_like(prediction.attention)
    tokens, log_probs, hidden = (torch.empty_like(x) for x in (prediction.tokens, prediction.log_probs, prediction.hidden))
    return Prediction(tokens, log_probs, hidden, attention, places=prediction.places)


def _placed(ahead: Prediction, owner: Int[Tensor, " N"], like: Prediction) -> Prediction:
    """Predictions of some canvases in the places of all."""
    room = _room(like)
    for into, of in zip(room.tensors(), ahead.tensors(), strict=True):
        into[owner] = of
    return room


def _keep(upcoming: Prediction, ahead: Prediction, owner: Int[Tensor, " N"], right: Bool[Tensor, " N"], rows: Sequence[int]) -> None:
    """Put the predictions of the right prefixes, at most one a canvas, in the places of their canvases, piece by piece."""
    length, size = upcoming.log_probs.shape[1:]
    number = torch.where(right, torch.arange(len(owner), device=owner.device), -1)
    best = torch.full_like(upcoming.tokens[:, 0], -1).scatter_reduce(0, owner, number, "amax")
    positions = max(1, min(length, 2 * PIECE // size))
    for some in torch.tensor(rows, device=owner.device).split(max(1, 2 * PIECE // (positions * size))):
        source = best[some]
        for into, of in zip(upcoming.tensors(), ahead.tensors(), strict=True):
            taken = (source >= 0).view(-1, *(1 for _ in into.shape[1:]))
            for start in range(0, length, positions):
                part = slice(start, start + positions)
                into[some, part] = torch.where(taken, of[source.clamp_min(0), part], into[some, part])
