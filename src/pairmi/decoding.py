"""The one decoding loop: predict, let a rule choose, draw, commit; or draft, verify, commit."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from pairmi.commit import plain, verified
from pairmi.counting import Counting, joined
from pairmi.draw import Streams, draw, likeliest
from pairmi.tempered import Tempered
from pairmi.types import Backbone, Decoded, PairmiError, PerRow, Positions, Prediction, Selection, Selector, Step, Tokens, Turn


@dataclass(frozen=True)
class Sampling:
    """How symbols are drawn and committed."""

    seed: int = 0
    temperature: float = 1.0
    greedy: bool = False
    verify: bool = False
    accept: float = 0.999  # greedy verification: how sure the conditional must be of a draft

    def __post_init__(self) -> None:
        if not 0 <= self.accept <= 1:
            raise PairmiError(f"accept={self.accept}: must be a probability between 0 and 1")


def iter_decode(backbone: Backbone, tokens: Tokens, selector: Selector, sampling: Sampling, index: PerRow | None = None) -> Iterator[Step]:
    """Decode one batch of canvases of one length, yielding what happened in each pass.

    `index` numbers the sequences: a row's symbols depend on its canvas, the seed and this number, not on the batch. Finished rows
    leave the batch. The rule is called with a metered backbone and never sees a drawn symbol.
    """
    meter = Counting(Tempered(backbone, sampling.temperature))
    mask = backbone.vocab.size
    streams = Streams(sampling.seed, torch.arange(len(tokens), device=tokens.device) if index is None else index)
    rows = torch.nonzero((tokens == mask).any(1))[:, 0]
    tokens, state = tokens[rows].clone(), dict[str, Tensor]()
    passes, evaluated = torch.zeros_like(rows), torch.zeros_like(rows)
    known: tuple[Tensor, Prediction] | None = None  # predictions that verification left behind
    turn = 0
    while len(rows):
        prediction, fresh = _predict(meter, tokens, known)
        passes, evaluated = passes + fresh, evaluated + fresh
        rng = streams.rows(rows).at(turn)
        calls, spent = meter.calls, meter.rows
        selection = selector(Turn(prediction, meter, rng, state))
        _enforce(selector, selection, prediction.masked)
        probe_calls, probe_rows = meter.calls - calls, meter.rows - spent
        symbols = likeliest(prediction.log_probs) if sampling.greedy else draw(prediction.log_probs, rng)
        if sampling.verify:
            commit = verified(meter, prediction, selection, symbols, rng, sampling.accept if sampling.greedy else None)
        else:
            commit = plain(tokens, selection, symbols)
        tokens, passes, evaluated = commit.tokens, passes + commit.called, evaluated + commit.evaluated
        yield Step(rows, prediction, selection, commit.committed, tokens, passes, evaluated, probe_calls, probe_rows)
        unfinished = torch.nonzero((tokens == mask).any(1))[:, 0]
        known = None if commit.prediction is None else _still_open(commit.ready, commit.prediction, unfinished)
        rows, tokens, passes, evaluated = (x[unfinished] for x in (rows, tokens, passes, evaluated))
        state = {name: value[unfinished] for name, value in selection.state.items()}
        turn += 1


def decode(
    backbone: Backbone,
    tokens: Tokens,
    selector: Selector,
    sampling: Sampling,
    index: PerRow | None = None,
    batch_size: int = 256,
    keep_steps: bool = False,
) -> Decoded:
    """Fill canvases of one length, batch by batch; the batch size changes time and memory, never a result."""
    if batch_size < 1:
        raise PairmiError(f"decode: batch_size must be >= 1, got {batch_size}")
    if not len(tokens):
        raise PairmiError("decode: expected at least one canvas, got none")
    index = torch.arange(len(tokens), device=tokens.device) if index is None else index
    filled, passes, evaluated = tokens.clone(), torch.zeros_like(index), torch.zeros_like(index)
    probe_calls, probe_rows, steps = 0, 0, []
    for batch in torch.arange(len(tokens), device=tokens.device).split(batch_size):
        for step in iter_decode(backbone, tokens[batch], selector, sampling, index[batch]):
            where = batch[step.rows]
            filled[where], passes[where], evaluated[where] = step.tokens, step.passes, step.evaluated
            probe_calls, probe_rows = probe_calls + step.probe_calls, probe_rows + step.probe_rows
            if keep_steps:
                steps.append(step)
    return Decoded(filled, passes, evaluated, probe_calls, probe_rows, tuple(steps))


def _predict(meter: Counting, tokens: Tokens, known: tuple[Tensor, Prediction] | None) -> tuple[Prediction, PerRow]:
    """The prediction of every row, and 1 for each row that had to be evaluated for it."""
    if known is None:
        return meter(tokens), torch.ones_like(tokens[:, 0])
    have, prediction = known
    fresh = torch.ones_like(tokens[:, 0])
    fresh[have] = 0
    missing = torch.nonzero(fresh)[:, 0]
    if len(missing):
        prediction = joined([prediction, meter(tokens[missing])])
    return prediction.rows(torch.cat([have, missing]).argsort()), fresh


def _still_open(ready: Int[Tensor, " R"], prediction: Prediction, unfinished: Int[Tensor, " U"]) -> tuple[Tensor, Prediction]:
    """Left-over predictions of rows that go on, renumbered after compaction."""
    keep = torch.isin(ready, unfinished)
    return torch.searchsorted(unfinished, ready[keep]), prediction.rows(torch.nonzero(keep)[:, 0])


def _enforce(selector: Selector, selection: Selection, masked: Positions) -> None:
    """Hold the rule to its contract."""
    who, chosen = type(selector).__name__, selection.chosen
    if chosen.shape != masked.shape:
        raise PairmiError(f"{who}: expected a choice of shape {list(masked.shape)}, got {list(chosen.shape)}")
    outside = chosen & ~masked
    if bool(outside.any()):
        row, position = torch.nonzero(outside)[0].tolist()
        raise PairmiError(f"{who}: chose position {position} of row {row}, which is already known; a rule may choose masked positions only")
    if not bool(chosen.any(1).all()):
        raise PairmiError(f"{who}: chose nothing for row {int(torch.nonzero(~chosen.any(1))[0])}; a rule must fill at least one position")
    length = masked.shape[1]
    ranks = torch.where(chosen, selection.order, length).sort(1).values
    expected = torch.arange(length, device=masked.device).expand_as(ranks)
    if not bool((ranks == torch.where(expected < chosen.sum(1, keepdim=True), expected, length)).all()):
        raise PairmiError(f"{who}: the order of the chosen positions must be 0, 1, 2, ... without gaps")
