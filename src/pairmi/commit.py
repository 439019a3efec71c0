"""Two ways to commit a selection: write the drawn symbols, or take them as a draft and verify it (speculative sampling)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pairmi.draw import Streams, draw
from pairmi.types import Backbone, PerRow, Positions, Prediction, Selection, Tokens


@dataclass(frozen=True)
class Commit:
    """What one pass wrote: the new tokens, where, and the next prediction of the rows that already have it."""

    tokens: Tokens
    committed: Positions
    ready: Int[Tensor, " R"]  # rows whose next prediction is known
    prediction: Prediction | None  # of these rows
    called: PerRow  # 1 where the row took part in a call
    evaluated: PerRow  # sequences evaluated for each row


def plain(tokens: Tokens, selection: Selection, symbols: Tokens) -> Commit:
    """Write the drawn symbols wherever the rule chose."""
    nothing = torch.zeros_like(tokens[:, 0])
    return Commit(torch.where(selection.chosen, symbols, tokens), selection.chosen, nothing[:0], None, nothing, nothing)


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
    sure = conditional.double().gather(-1, draft[..., None])[..., 0].exp() >= accept
    return sure & (conditional.argmax(-1) == draft)


def verified(meter: Backbone, prediction: Prediction, selection: Selection, draft: Tokens, rng: Streams, sure: float | None) -> Commit:
    """Check the draft against the conditionals, all prefixes in one call; commit what one-by-one decoding would have drawn.

    Row n of a canvas holds its first n chosen symbols, and so predicts the next. The first symbol is always right.
    `sure` = None samples: the first rejected symbol is redrawn from the residual, and every symbol is distributed as a draw
    from its conditional. Otherwise greedy: accept while the draft is the likeliest symbol with at least this probability, leave
    the rest open. A prefix that fills its canvas up needs no row.
    """
    tokens, chosen, order, mask = prediction.tokens, selection.chosen, selection.order, meter.vocab.size
    size = chosen.sum(1)
    completes = size == prediction.masked.sum(1)
    needed = size - completes.long()  # prefixes 1..needed
    owner = torch.repeat_interleave(torch.arange(len(size), device=size.device), needed)
    prefix = torch.arange(len(owner), device=size.device) - (needed.cumsum(0) - needed)[owner] + 1
    taken = torch.where(chosen, order, mask + tokens.shape[1])  # never below a prefix where not chosen
    filled = torch.where(taken[owner] < prefix[:, None], draft[owner], tokens[owner])
    ahead = meter(filled) if len(owner) else None

    accepted, correction = size.clone(), draft.clone()
    if ahead is not None:
        tests = torch.nonzero(prefix < size[owner])[:, 0]  # rows that have a next member to judge
        who = owner[tests]
        member = (taken[who] == prefix[tests][:, None]).long().argmax(1)
        conditional, marginal, symbol = ahead.log_probs[tests, member], prediction.log_probs[who, member], draft[who, member]
        if sure is not None:
            good = certain(conditional, symbol, sure)
        else:
            chance = acceptance(conditional, marginal).gather(1, symbol[:, None])[:, 0]
            good = rng.uniform("accept", tokens.shape[1])[who, member] < chance
            redrawn = draw(residual(conditional, marginal).log()[:, None], rng.rows(who), "residual")[:, 0]
        failed = torch.where(good, tokens.shape[1], prefix[tests])
        accepted = size.scatter_reduce(0, who, failed, "amin")
        if sure is None:
            stop = prefix[tests] == accepted[who]
            correction[who[stop], member[stop]] = redrawn[stop]

    rejected = accepted < size
    stale = rejected & (sure is None)  # a redrawn symbol makes the context new
    committed = taken < (accepted + stale)[:, None]
    after = torch.where(committed, correction, tokens)
    ready = torch.nonzero((prefix == accepted[owner]) & ~stale[owner])[:, 0]
    return Commit(after, committed, owner[ready], None if ahead is None else ahead.rows(ready), (needed > 0).long(), needed)
