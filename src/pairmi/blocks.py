"""Blocks: windows of long canvases as canvases of their own, with everything else as fixed context."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from pairmi.model import Around, predict_at
from pairmi.results import Step
from pairmi.types import Backbone, PairmiError, Places, Prediction, Reason, Rows, Tokens, Waiting


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
class Window(Around):
    """A backbone over windows of canvases: a conditional model, whose memory grows with the window and not with the canvas.

    Rules, estimates, verification and the loop use it as any other backbone. Each of its rows stands in a canvas of its own: whoever
    evaluates other rows than the canvases says in `within` whose they are, as the meter does.
    """

    backbone: Backbone
    canvases: Tokens
    places: Places  # of the window in each canvas
    length: None = None

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

    def widened(self, step: Step) -> Step:
        """What happened in windows as what happened to their canvases."""
        own, waiting = step.rows.to(self.places.device), step.waiting
        places, after = self.places[own], self.put(step.tokens, own)
        unknown = after == self.vocab.size

        def spread(values: Tensor, rest: Tensor) -> Tensor:
            return rest.scatter(1, places, values)

        blocker = torch.where(waiting.blocker >= 0, places.gather(1, waiting.blocker.clamp_min(0)), -1)
        reason = torch.where(unknown, int(Reason.LATER), int(Reason.GIVEN))
        amount = torch.zeros_like(after, dtype=waiting.amount.dtype)
        widened = Waiting(spread(waiting.reason, reason), spread(blocker, torch.full_like(after, -1)), spread(waiting.amount, amount))
        return replace(step, tokens=after, committed=spread(step.committed, torch.zeros_like(unknown)), waiting=widened)
