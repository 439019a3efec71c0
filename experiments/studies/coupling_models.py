"""Prices of drawing by exact tables on any model, and words that come out of masked text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from pairmi.commit import Sampling
from pairmi.counting import Counting
from pairmi.decoding import decode
from pairmi.mi.probed_tables import ProbedTables, combined
from pairmi.model import Model, Wrapped
from pairmi.pricing.price import measure
from pairmi.selectors.wrappers import Coupled
from pairmi.spec import rule
from pairmi.types import Backbone, Meter, PerRow, Prediction, State, Tokens


@dataclass(frozen=True)
class SummedTables:
    """As `ProbedTables`, with shifts that add up: exact evidence of each member alone, counted as if none repeated another."""

    def begin(self, prediction: Prediction, members: Int[Tensor, "B M"], backbone: Meter) -> State:
        """Nothing is shifted yet."""
        return ProbedTables().begin(prediction, members, backbone)

    def after(self, state: State, rank: PerRow, symbol: PerRow, backbone: Meter) -> State:
        """One more shift."""
        nothing = torch.zeros_like(state["low"])
        alone = ProbedTables().after(dict(state) | {"low": nothing, "high": nothing}, rank, symbol, backbone)
        return dict(state) | {"low": state["low"] + alone["low"] + alone["high"]}

    def shifted(self, state: State, rank: PerRow) -> Float[Tensor, "B V"]:
        """By the sum."""
        every = torch.arange(len(rank), device=rank.device)
        low = state["low"][every, rank]
        return combined(state["log_probs"][every, rank], low, torch.zeros_like(low))


WAYS = {"marginal": None, "probed": ProbedTables(), "sum": SummedTables()}


def remembering(backbone: Backbone) -> Backbone:
    """The same backbone, which does not compute again what it has just said: several couplings ask for the same rows in turn."""
    last: list[Any] = []

    def call(tokens: Tokens) -> Prediction:
        if not (last and torch.equal(last[0], tokens)):
            last[:] = [tokens.clone(), backbone(tokens)]
        return last[1]

    return Wrapped(backbone, call)


def priced_ways(model: Model, sets: str, canvases: Sequence[Tensor], seed: int) -> dict[str, Any]:
    """The price of the sets of a rule by marginals, exact tables, combined in both ways, and learnt ones: nats of each sequence, passes, size."""
    chosen = rule(sets, model)
    ways = WAYS if model.tables is None else WAYS | {"learnt": model.tables}
    rules = {name: chosen if way is None else Coupled(chosen, way) for name, way in ways.items()}
    found = dict(zip(rules, measure(remembering(model), canvases, rules, seed=seed, batch_size=32), strict=True))
    plain = found["marginal"]
    return {name: one.each.tolist() for name, one in found.items()} | {
        "passes": plain.each_passes.tolist(),
        "unknown": plain.unknown.tolist(),
    }


@dataclass(frozen=True)
class Blanked:
    """A sentence some of whose two-letter words are unknown."""

    canvas: Tensor
    starts: tuple[int, ...]


def blanked(tokens: Tensor, words: Sequence[tuple[int, int]], most: int, mask: int, number: int) -> Blanked:
    """Hide at most so many of the words of two letters, at random, no two of them next to each other."""
    starts: list[int] = []
    for n in np.random.default_rng(number).permutation(len(words)).tolist():
        start = words[n][0]
        if len(starts) < most and all(abs(start - other) > 2 for other in starts):
            starts.append(start)
    where = torch.tensor([at for start in starts for at in (start, start + 1)])
    return Blanked(tokens.index_fill(0, where, mask), tuple(sorted(starts)))


def drawn_words(model: Model, some: Sequence[Blanked], spec: str, seed: int) -> dict[str, Any]:
    """What is drawn for each hidden word of each sentence, and what it took."""
    out = decode(model, [one.canvas for one in some], rule(spec, model), Sampling(seed), index=list(range(len(some))), batch_size=16)
    letters = model.vocab.symbols
    pairs = [
        ["".join(letters[n] for n in one.tokens[at : at + 2].tolist()) for at in what.starts] for one, what in zip(out, some, strict=True)
    ]
    return {"pairs": pairs, "passes": [one.passes for one in out], "probe_rows": [one.probe_rows for one in out]}


def lighting_up(model: Model, canvas: Tensor, first: int, letter: str, most: int = 6) -> Mapping[str, Any]:
    """The likeliest letters of two unknown positions, and of the second when the first is this letter: one more row."""
    meter, second = Counting(model), first + 1
    before = meter(canvas[None]).log_probs[0]
    drawn = model.vocab.symbols.index(letter)
    after = meter(canvas.index_fill(0, torch.tensor([first]), drawn)[None]).log_probs[0, second]

    def likeliest(log_probs: Tensor) -> list[tuple[str, float]]:
        top = log_probs.exp().topk(most)
        return [(model.vocab.symbols[n], p) for n, p in zip(top.indices.tolist(), top.values.tolist(), strict=True)]

    return {
        "text": "".join("□" if n == model.vocab.size else model.vocab.symbols[n] for n in canvas.tolist()),
        "letter": letter,
        "first": likeliest(before[first]),
        "second": likeliest(before[second]),
        "after": likeliest(after),
    }
