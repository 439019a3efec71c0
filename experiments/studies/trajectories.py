"""Masks as decoders leave them: canvases that fill up in the model's own order, a little further in every training step."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from pairmi.types import PairmiError, PerPosition, Tokens


@runtime_checkable
class Starts(Protocol):
    """Where trajectories begin."""

    def start(self, count: int, rng: torch.Generator) -> tuple[Tokens, Tokens]:
        """Canvases as a decoder would first meet them, and the sequences behind them."""
        ...

    def turned(self, noisy: Tokens, clean: Tokens, rng: torch.Generator) -> tuple[Tokens, Tokens]:
        """The same under random symmetries of the data, if there are any."""
        ...


@runtime_checkable
class Determines(Protocol):
    """Starts that know which of their canvases leave no choice."""

    def determined(self, noisy: Tokens) -> Bool[Tensor, " B"]:
        """Whether what is visible determines what is hidden."""
        ...


class Mistakes:
    """For every row of a pool the first state at which the model was wrong since the row began."""

    def __init__(self, noisy: Tokens, clean: Tokens, starts: Starts) -> None:
        if not isinstance(starts, Determines):
            raise PairmiError(
                f"Trajectories: again > 0 begins where the model was wrong, which is unbiased only where the visible symbols determine the "
                f"hidden ones; expected starts with `determined`, got {type(starts).__name__}; set again to 0"
            )
        self.starts, self.noisy, self.clean = starts, noisy.clone(), clean.clone()
        self.determined, self.met = starts.determined(noisy), torch.zeros(len(noisy), dtype=torch.bool)

    def tensors(self) -> dict[str, Tensor]:
        """The kept states and what is known of the rows, live."""
        return {"mistakes": self.noisy, "truths": self.clean, "determined": self.determined, "met": self.met}

    def keep(self, wrong: Bool[Tensor, "B L"], noisy: Tokens, clean: Tokens) -> None:
        """Remember the states of the rows that are wrong for the first time."""
        rows = wrong.any(1) & self.determined & ~self.met
        self.noisy[rows], self.clean[rows] = noisy[rows], clean[rows]
        self.met |= rows

    def restart(self, done: Int[Tensor, " N"], noisy: Tokens, clean: Tokens, lucky: Bool[Tensor, " N"]) -> None:
        """Put the kept states of the `lucky` rows in the place of their new starts."""
        back = done[lucky & self.met[done]]
        noisy[back], clean[back] = self.noisy[back], self.clean[back]
        self.met[done] = False
        fresh = done[~torch.isin(done, back)]
        self.determined[fresh] = self.starts.determined(noisy[fresh])


class Trajectories:
    """A pool of canvases, each on its way from its start to where nothing is unsure any more; then it starts again.

    In every step a random number of the positions that the model is sure of get their true symbols. Where it is sure of none the
    canvas stays as it is, but for another symmetry, or the most confident position is shown: such states are few and decide where it
    leads, so the pool lingers there. What is shown is chosen by what was visible before, never by what is hidden, so that
    p(hidden | visible) is what it was under random masks: the model learns the same conditionals, at the states that
    it will really meet. The confidences come from the training pass itself.

    With `again` > 0 the first state on a way at which a decoder would have written a wrong symbol is where its row begins again, with
    this probability, when it has ended. This looks at what is hidden, so it is done only where that is determined by what is visible.
    """

    def __init__(
        self,
        rows: int,
        starts: Starts,
        mask: int,
        rng: torch.Generator,
        sure: float = 0.98,
        linger: float = 0.75,
        again: float = 0.0,
    ) -> None:
        self.starts, self.mask, self.sure, self.linger, self.again = starts, mask, sure, linger, again
        self.noisy, self.clean = starts.start(rows, rng)
        self.mistakes = Mistakes(self.noisy, self.clean, starts) if again else None

    def tensors(self) -> dict[str, Tensor]:
        """The pool, live."""
        return {"noisy": self.noisy, "clean": self.clean} | (self.mistakes.tensors() if self.mistakes else {})

    def batch(self, rng: torch.Generator) -> tuple[Tokens, Tokens]:
        """The whole pool, seen under new symmetries."""
        for kept, turned in zip((self.noisy, self.clean), self.starts.turned(self.noisy, self.clean, rng), strict=True):
            kept.copy_(turned)
        return self.noisy, self.clean

    def follow(self, confidence: PerPosition, rng: torch.Generator, right: PerPosition | None = None) -> None:
        """Show some of what is sure, or linger; begin anew where all that is left is sure.

        `right` (1 where the likeliest symbol is the true one) is what mistakes are found by; without it none are kept.
        """
        masked = self.noisy == self.mask
        known = masked & (confidence >= self.sure)
        sure, fraction, luck = known.sum(1), *torch.rand(2, len(masked), generator=rng)
        count = torch.where(sure > 0, ((2 * fraction).clamp(max=1) * sure).ceil(), (luck >= self.linger).long())
        place = torch.where(masked, confidence, -1).argsort(dim=1, descending=True, stable=True).argsort(1)
        shown = masked & (place < count[:, None])
        if self.mistakes and right is not None:
            self.mistakes.keep(masked & (known | (place == 0)) & (right < 0.5), self.noisy, self.clean)
        self.noisy.copy_(torch.where(shown, self.clean, self.noisy))
        done = torch.nonzero(~(masked & ~shown & ~known).any(1))[:, 0]
        if len(done):
            self.noisy[done], self.clean[done] = self.starts.start(len(done), rng)
            if self.mistakes:
                self.mistakes.restart(done, self.noisy, self.clean, torch.rand(len(done), generator=rng) < self.again)
