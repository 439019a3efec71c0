"""The one decoding loop: predict, let a rule choose, draw, commit; or draft, verify, commit."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from pairmi.blocks import Window, checked_block, leftmost
from pairmi.commit import Draft, Sampling, drawn_together, verified
from pairmi.counting import Counting
from pairmi.draw import Streams, draw_at
from pairmi.model import device_of
from pairmi.results import Pass, Result, Step
from pairmi.selectors.wrappers import InBlocks
from pairmi.types import Backbone, PairmiError, PerRow, Positions, Prediction, Selection, Selector, Tokens, Turn

Explain = Callable[[Step, int], Pass]  # one row of a step, in words


class _Batch:
    """The rows that are not finished yet: what they are on the device, and the numbers that the host keeps of them."""

    def __init__(self, meter: Counting, tokens: Tokens, streams: Streams, left: Sequence[int]) -> None:
        self.meter, self.tokens, self.streams, self.state = meter, tokens, streams, dict[str, Tensor]()
        self.given = tokens != meter.vocab.size
        self.rows = [row for row, unknown in enumerate(left) if unknown]
        self.left = [left[row] for row in self.rows]
        self.costs = torch.zeros(3, len(self.rows), dtype=torch.long)  # passes, rows and probes
        self.upcoming: Prediction | None = None  # what verification left behind,
        self.stale: list[int] = []  # and the rows of which it says nothing

    def predict(self) -> Prediction:
        """The prediction of every row; only those are evaluated of which it is not known."""
        known, self.upcoming = self.upcoming, None
        if known is None or len(self.stale) == len(self.rows):
            del known  # before the next one is made
            self.costs[:2] += 1
            return self.meter(self.tokens)
        if self.stale:
            self.costs[:2, self.stale] += 1
            known, where = known.owned(), torch.tensor(self.stale, device=self.tokens.device)
            for some, prediction in self.meter.pieces(self.tokens[where], len(self.tokens), where):
                for into, of in zip(known.tensors(), prediction.tensors(), strict=True):
                    into[where[some]] = of
        return self.meter.checked(known)

    def check(self, prediction: Prediction, draft: Draft, rng: Streams, sampling: Sampling) -> tuple[Positions, Tokens, list[int]]:
        """Verify a draft: what is committed, the tokens afterwards, and how many positions each row has filled."""
        checked = verified(self.meter, prediction, draft, rng, sampling)
        self.upcoming = checked.upcoming
        needed = torch.tensor(checked.needed)
        self.costs[:2] += torch.stack([needed.clamp_max(1), needed])
        wrong = self.meter.wrong()
        told = torch.cat([checked.accepted, torch.zeros_like(checked.accepted[:1]) if wrong is None else wrong.long()[None]]).tolist()
        self.meter.settle(bool(told.pop()))
        rejected = [row for row, (right, size) in enumerate(zip(told, draft.sizes, strict=True)) if right < size]
        self.stale = [] if sampling.greedy else rejected  # a redrawn symbol is a new context
        return checked.committed, checked.tokens, [right + (row in set(self.stale)) for row, right in enumerate(told)]

    def stopped(self, after: Tokens, filled: Sequence[int], sampling: Sampling) -> list[int]:
        """How many positions each row has filled, those behind a stop included: for the loop they are done."""
        if sampling.stop is None:
            return list(filled)
        ended = sampling.ended(after, self.given, self.meter.vocab.size).any(1).tolist()
        return [left if end else size for left, size, end in zip(self.left, filled, ended, strict=True)]

    def go_on(self, tokens: Tokens, filled: Sequence[int]) -> None:
        """After a pass: finished rows leave."""
        self.tokens = tokens
        self.left = [left - size for left, size in zip(self.left, filled, strict=True)]
        going = [place for place, left in enumerate(self.left) if left]
        if len(going) == len(self.rows):
            return
        self.rows, self.left = ([values[place] for place in going] for values in (self.rows, self.left))
        self.costs, some = self.costs[:, going], torch.tensor(going, dtype=torch.long, device=tokens.device)
        self.meter.keep(some)
        self.tokens, self.given, self.streams = self.tokens[some], self.given[some], self.streams.rows(some)
        self.state = {name: value[some] for name, value in self.state.items()}
        self.upcoming = None if self.upcoming is None else self.upcoming.rows(some)
        self.stale = [new for new, old in enumerate(going) if old in set(self.stale)]


def iter_decode(
    backbone: Backbone, tokens: Tokens, selector: Selector, sampling: Sampling, index: PerRow | None = None, keep_predictions: bool = False
) -> Iterator[Step]:
    """Decode one batch of canvases of one length, yielding what happened in each pass.

    `index` numbers the sequences: a row's symbols depend on its canvas, the seed and this number, not on the batch. Finished rows
    leave the batch. The rule is called with a metered backbone and never sees a drawn symbol. Everything lives on the backbone's
    device; the host waits for it once a pass, to learn how much was chosen, and under `verify` or with a `stop` once more, to learn how
    much was right. A rule in blocks (`block=`) sees a window of one block at a time: so many logits are computed, and no more.
    """
    numbers = torch.arange(len(tokens)) if index is None else index.cpu()
    if isinstance(selector, InBlocks):
        return _by_blocks(backbone, tokens, selector, sampling, numbers, keep_predictions)
    return _passes(backbone, tokens, selector, sampling, numbers, keep_predictions)


def _by_blocks(
    backbone: Backbone, tokens: Tokens, selector: InBlocks, sampling: Sampling, numbers: PerRow, keep_predictions: bool
) -> Iterator[Step]:
    """Run by run of `block` unknown positions, each over windows of the rows that have them.

    A run's turns begin at the number of positions before it: a pass fills one at least, so none of them has been used.
    """
    mask, device, turn = backbone.vocab.size, device_of(backbone), 0
    whole, left = tokens.to(device).clone(), (tokens == mask).sum(1).tolist()
    given, rows = whole != mask, [row for row, unknown in enumerate(left) if unknown]
    spent = torch.zeros(3, len(tokens), dtype=torch.long)  # passes, rows and probes
    while rows:
        some, before = torch.tensor(rows), spent.clone()
        canvases = whole[some.to(device)]
        window = Window(backbone, canvases, leftmost(canvases, mask, selector.block))
        for step in _passes(window, window.tokens, selector.rule, sampling, numbers[some], keep_predictions, turn):
            mine, wide = some[step.rows], window.widened(step)
            whole[mine.to(device)] = wide.tokens
            spent[:, mine] = before[:, mine] + torch.stack([step.passes, step.evaluated, step.probe_rows])
            passes, evaluated, probed = spent[:, mine]
            yield replace(wide, rows=mine, passes=passes, evaluated=evaluated, probe_rows=probed)
        left = [max(0, unknown - selector.block) for unknown in left]
        over = [False] * len(left) if sampling.stop is None else sampling.ended(whole, given, mask).any(1).tolist()
        rows, turn = [row for row in rows if left[row] and not over[row]], turn + selector.block


def _passes(
    backbone: Backbone, tokens: Tokens, selector: Selector, sampling: Sampling, numbers: PerRow, keep_predictions: bool, turn: int = 0
) -> Iterator[Step]:
    """The one loop."""
    device, left = device_of(backbone), (tokens == backbone.vocab.size).sum(1).tolist()
    some = torch.tensor([row for row, unknown in enumerate(left) if unknown], dtype=torch.long)
    streams, meter = Streams(sampling.seed, numbers[some].to(device)), Counting(backbone)
    meter.keep(some.to(device))
    batch = _Batch(meter, tokens[some.to(tokens.device)].to(device), streams, left)
    while batch.rows:
        prediction, rng = batch.predict(), batch.streams.at(turn)
        selection, draft = _drafted(selector, prediction, batch, rng)
        if selection.coupling is None:
            draft = _with_symbols(draft, prediction, rng, sampling)
        else:
            meter.spent = torch.zeros_like(draft.tokens[:, 0])
            selection, draft = drawn_together(meter, selection, selection.coupling, draft, prediction, rng, sampling)
            batch.costs[2] += meter.spent.cpu()
            meter.spent = None
        committed, after, filled = selection.chosen, draft.symbols, list(draft.sizes)
        if sampling.verify:
            committed, after, filled = batch.check(prediction, draft, rng, sampling)
        rows, drafted, kept = torch.tensor(batch.rows), torch.tensor(draft.sizes), prediction if keep_predictions else None
        del prediction, draft  # before the next ones are made
        passes, evaluated, probed = batch.costs.clone()
        yield Step(rows, after, committed, selection.waiting, drafted, passes, evaluated, probed, kept)
        del kept
        batch.go_on(after, batch.stopped(after, filled, sampling))
        turn += 1


def decode(
    backbone: Backbone,
    canvases: Sequence[Tensor] | Tokens,
    selector: Selector,
    sampling: Sampling,
    index: Sequence[int] | None = None,
    batch_size: int = 256,
    explain: Explain | None = None,
) -> list[Result]:
    """Fill canvases of any lengths, batch by batch; the batch size changes time and memory, never a result."""
    if batch_size < 1:
        raise PairmiError(f"decode: batch_size must be >= 1, got {batch_size}")
    if not len(canvases):
        raise PairmiError("decode: expected at least one canvas, got none")
    if isinstance(selector, InBlocks):
        checked_block(selector.block, canvases)
    numbers = torch.arange(len(canvases)) if index is None else torch.tensor(list(index))
    results: dict[int, Result] = {}
    for batch in batches(canvases, batch_size):
        tokens = torch.stack([canvases[n] for n in batch])
        filled, costs = tokens.cpu().clone(), torch.zeros(len(batch), 3, dtype=torch.long)
        words: list[list[Pass]] = [[] for _ in batch]
        for step in iter_decode(backbone, tokens, selector, sampling, numbers[batch]):
            filled[step.rows] = step.tokens.cpu()
            costs[step.rows] = torch.stack([step.passes, step.evaluated, step.probe_rows], dim=1)
            if explain is not None:
                for place, row in enumerate(step.rows.tolist()):
                    words[row].append(explain(step, place))
        for n, row, (passes, rows, probe_rows), steps in zip(batch, filled, costs.tolist(), words, strict=True):
            end = sampling.ended(row[None], canvases[n].cpu()[None] != backbone.vocab.size, backbone.vocab.size)[0].nonzero()
            results[n] = Result(row[: int(end[0]) + 1] if len(end) else row, backbone.vocab, passes, rows, probe_rows, tuple(steps))
    return [results[n] for n in range(len(canvases))]


def batches(canvases: Sequence[Tensor] | Tokens, size: int) -> Iterator[list[int]]:
    """The places of canvases that can go together: of one length, at most `size` of them."""
    by_length: dict[int, list[int]] = {}
    for place, canvas in enumerate(canvases):
        by_length.setdefault(len(canvas), []).append(place)
    for _, places in sorted(by_length.items()):
        yield from (places[start : start + size] for start in range(0, len(places), size))


def _drafted(selector: Selector, prediction: Prediction, batch: _Batch, rng: Streams) -> tuple[Selection, Draft]:
    """Let the rule choose and hold it to its contract, in one look at the device."""
    masked, length, meter = prediction.masked, prediction.tokens.shape[1], batch.meter
    meter.spent = torch.zeros_like(prediction.tokens[:, 0])
    selection = selector(Turn(prediction, meter, rng, batch.state, max(batch.left)))
    if not isinstance(selection, Selection):
        who, got = type(selector).__name__, type(selection).__name__
        raise PairmiError(f"{who}: expected a Selection, got {got}; return pairmi.types.Selection(chosen, order, waiting)")
    spent, meter.spent, chosen = meter.spent, None, selection.chosen
    if chosen.shape != masked.shape:
        raise PairmiError(f"{type(selector).__name__}: expected a choice of shape {list(masked.shape)}, got {list(chosen.shape)}")
    ranks, members = torch.where(chosen, selection.order, length).sort(dim=1, stable=True)
    sizes = chosen.sum(1)
    expected = torch.arange(length, device=ranks.device).expand_as(ranks)
    gaps = (ranks != torch.where(expected < sizes[:, None], expected, length)).any(1)
    outside, wrong = (chosen & ~masked).any(1), meter.wrong()
    flags = torch.zeros_like(outside) if wrong is None else wrong.expand_as(outside)
    counted, probed, *flagged = torch.stack([sizes, spent, *(x.long() for x in (flags, outside, gaps))]).tolist()  # here the host waits
    meter.settle(any(flagged[0]))
    _enforce(selector, chosen & ~masked, flagged[1], flagged[2], counted)
    batch.costs[2] += torch.tensor(probed)
    batch.state = dict(selection.state)  # what it remembered before need not be held while drafts are verified
    order = torch.where(chosen, selection.order, -1)
    return selection, Draft(prediction.tokens, order, members, prediction.tokens, counted, batch.left)


def _enforce(selector: Selector, bad: Positions, outside: list[int], gaps: list[int], sizes: list[int]) -> None:
    """Name the offender where a choice breaks the contract."""
    who = type(selector).__name__
    if any(outside):
        row, position = torch.nonzero(bad)[0].tolist()
        raise PairmiError(f"{who}: chose position {position} of row {row}, which is already known; a rule may choose masked positions only")
    if not all(sizes):
        raise PairmiError(f"{who}: chose nothing for row {sizes.index(0)}; a rule must fill at least one position")
    if any(gaps):
        raise PairmiError(f"{who}: the order of the chosen positions must be 0, 1, 2, ... without gaps")


def _with_symbols(draft: Draft, prediction: Prediction, rng: Streams, sampling: Sampling) -> Draft:
    """A symbol for every chosen position, and for no other."""
    device = draft.tokens.device
    rows = torch.tensor([row for row, size in enumerate(draft.sizes) for _ in range(size)], device=device)
    ranks = torch.tensor([rank for size in draft.sizes for rank in range(size)], device=device)
    places = draft.members[rows, ranks]
    symbols = draw_at(prediction.log_probs, (rows, places), rng, sampling.temperature, sampling.greedy)
    return replace(draft, symbols=draft.tokens.index_put((rows, places), symbols))
