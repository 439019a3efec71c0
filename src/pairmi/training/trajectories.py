"""Masks as decoders leave them: canvases that fill up in the model's own order, a little further in every training step."""

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from pairmi.types import PerPosition, Tokens


@runtime_checkable
class Starts(Protocol):
    """Where trajectories begin."""

    def start(self, count: int, rng: torch.Generator) -> tuple[Tokens, Tokens]:
        """Canvases as a decoder would first meet them, and the sequences behind them."""
        ...

    def turned(self, noisy: Tokens, clean: Tokens, rng: torch.Generator) -> tuple[Tokens, Tokens]:
        """The same under random symmetries of the data, if there are any."""
        ...


class Trajectories:
    """A pool of canvases, each on its way from its start to where nothing is unsure any more; then it starts again.

    In every step a random number of the positions that the model is sure of get their true symbols. Where it is sure of none the
    canvas stays as it is, but for another symmetry, or the most confident position is shown: such states are few and decide where it
    leads, so the pool lingers there. What is shown is chosen by what was visible before, never by what is hidden, so that
    p(hidden | visible) is what it was under random masks: the model learns the same conditionals, at the states that
    it will really meet. The confidences come from the training pass itself.
    """

    def __init__(self, rows: int, starts: Starts, mask: int, rng: torch.Generator, sure: float = 0.98, linger: float = 0.75) -> None:
        self.starts, self.mask, self.sure, self.linger = starts, mask, sure, linger
        self.noisy, self.clean = starts.start(rows, rng)

    def tensors(self) -> dict[str, Tensor]:
        """The pool, live."""
        return {"noisy": self.noisy, "clean": self.clean}

    def batch(self, rng: torch.Generator) -> tuple[Tokens, Tokens]:
        """The whole pool, seen under new symmetries."""
        for kept, turned in zip((self.noisy, self.clean), self.starts.turned(self.noisy, self.clean, rng), strict=True):
            kept.copy_(turned)
        return self.noisy, self.clean

    def follow(self, confidence: PerPosition, rng: torch.Generator) -> None:
        """Show some of what is sure, or linger; begin again where all that is left is sure."""
        masked = self.noisy == self.mask
        known = masked & (confidence >= self.sure)
        sure, fraction, luck = known.sum(1), *torch.rand(2, len(masked), generator=rng)
        count = torch.where(sure > 0, ((2 * fraction).clamp(max=1) * sure).ceil(), (luck >= self.linger).long())
        place = torch.where(masked, confidence, -1).argsort(dim=1, descending=True, stable=True).argsort(1)
        shown = masked & (place < count[:, None])
        self.noisy.copy_(torch.where(shown, self.clean, self.noisy))
        done = torch.nonzero(~(masked & ~shown & ~known).any(1))[:, 0]
        if len(done):
            self.noisy[done], self.clean[done] = self.starts.start(len(done), rng)
