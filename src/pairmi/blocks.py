"""Blocks: windows of long canvases as canvases of their own, with everything else as fixed context, decoded one after another."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from pairmi.model import device_of, predict_at
from pairmi.results import Step
from pairmi.types import (
    Backbone,
    PairmiError,
    PerRow,
    Places,
    Positions,
    Prediction,
    Reason,
    Rows,
    Tokens,
    Vocab,
    Waiting,
)


def checked_block(block: int, canvases: Sequence[Tensor] | Tokens) -> int:
    """A block that at least one canvas can have."""
    longest = max(len(canvas) for canvas in canvases)
    if not 1 <= block <= longest:
        raise PairmiError(f"block={block}: must be from 1 to the number of positions, here {longest}; without block= all are looked at")
    return block


def leftmost(tokens: Tokens, mask: int, size: int) -> Places:
    """The first `size` unknown positions of each row, and known ones, the first of them, where there are fewer; in order.

    As many in every row, whatever its batch mates: `size`, or all positions of a shorter canvas.
    """
    masked = tokens == mask
    rank = torch.where(masked, masked.long().cumsum(1), size + 1)
    wanted = rank + (masked & (rank > size)) * tokens.shape[1]  # later blocks are never in it
    return wanted.argsort(dim=1, stable=True)[:, :size].sort(dim=1).values


@dataclass(frozen=True)
class Window:
    """A backbone over windows of canvases: a conditional model, whose memory grows with the window and not with the canvas.

    Rules, estimates, verification and the loop use it as any other backbone. Each of its rows stands in a canvas of its own: whoever
    evaluates other rows than the canvases says in `within` whose they are, as the meter does.
    """

    backbone: Backbone
    canvases: Tokens
    places: Places  # of the window in each canvas
    length: None = None

    @property
    def vocab(self) -> Vocab:
        """The alphabet."""
        return self.backbone.vocab

    @property
    def tokens(self) -> Places:
        """What stands in the windows."""
        return self.canvases.gather(1, self.places)

    def __call__(self, tokens: Tokens) -> Prediction:
        """One pass over all windows."""
        if len(tokens) != len(self.canvases):
            raise PairmiError(f"Window: {len(tokens)} rows for {len(self.canvases)} canvases; say whose each is (the meter's `owner`)")
        return self.within(tokens, torch.arange(len(tokens), device=tokens.device))

    def within(self, tokens: Int[Tensor, "R Q"], owner: Rows, some: Int[Tensor, "R S"] | None = None) -> Prediction:
        """One pass over rows that stand in the canvases of their owners; of all positions of the window, or of some of each row."""
        places = self.places[owner] if some is None else self.places[owner].gather(1, some)
        asked = tokens if some is None else tokens.gather(1, some)
        return replace(predict_at(self.backbone, self.put(tokens, owner), places), tokens=asked, places=places)

    def put(self, tokens: Int[Tensor, "R Q"], owner: Rows) -> Int[Tensor, "R L"]:
        """The canvases of the owners with these tokens in their windows."""
        return self.canvases[owner].scatter(1, self.places[owner], tokens)


def by_blocks(
    backbone: Backbone,
    tokens: Tokens,
    size: int,
    passes: Callable[[Window, PerRow, int], Iterator[Step]],
    ended: Callable[[Tokens], Positions | None],
) -> Iterator[Step]:
    """Decode canvases run by run of `size` unknown positions, each by `passes` over windows of some rows, from a turn on.

    A run's turns begin at the number of positions before it: a pass fills one at least, so none of them has been used. A row ends early
    where `ended` says so of the canvases.
    """
    mask, device = backbone.vocab.size, device_of(backbone)
    whole, left = tokens.to(device).clone(), (tokens == mask).sum(1).tolist()
    rows, turn = [row for row, unknown in enumerate(left) if unknown], 0
    spent = torch.zeros(3, len(tokens), dtype=torch.long)  # passes, rows and probes
    while rows:
        some, before = torch.tensor(rows), spent.clone()
        canvases = whole[some.to(device)]
        window = Window(backbone, canvases, leftmost(canvases, mask, size))
        for step in passes(window, some, turn):
            mine, own = some[step.rows], step.rows.to(device)
            after = window.put(step.tokens, own)
            whole[mine.to(device)] = after
            spent[:, mine] = before[:, mine] + torch.stack([step.passes, step.evaluated, step.probe_rows])
            yield _widened(step, window, own, mine, after, spent[:, mine])
        left = [max(0, unknown - size) for unknown in left]
        finished = ended(whole)
        over = [False] * len(left) if finished is None else finished.any(1).tolist()
        rows, turn = [row for row in rows if left[row] and not over[row]], turn + size


def _widened(step: Step, window: Window, own: PerRow, rows: PerRow, after: Tokens, spent: Int[Tensor, "3 B"]) -> Step:
    """What happened in windows as what happened to their canvases."""
    waiting, unknown = step.waiting, after == window.vocab.size

    def spread(values: Tensor, rest: Tensor) -> Tensor:
        return rest.scatter(1, window.places[own], values)

    blocker = torch.where(waiting.blocker >= 0, window.places[own].gather(1, waiting.blocker.clamp_min(0)), -1)
    reason = torch.where(unknown, int(Reason.LATER), int(Reason.GIVEN))
    amount = torch.zeros_like(after, dtype=waiting.amount.dtype)
    widened = Waiting(spread(waiting.reason, reason), spread(blocker, torch.full_like(after, -1)), spread(waiting.amount, amount))
    committed = spread(step.committed, torch.zeros_like(unknown))
    counts = dict(zip(("passes", "evaluated", "probe_rows"), spent, strict=True))
    return replace(step, rows=rows, tokens=after, committed=committed, waiting=widened, **counts)
