"""What a head was trained on, so that it can say when a canvas is outside of that."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from pairmi.types import Prediction, Tokens

GRAIN = 20  # masked fractions are kept in steps of 1 / 20, rounded outwards


@dataclass(frozen=True)
class TrainedOn:
    """The range of what was seen, ends included."""

    lengths: tuple[int, int]
    masked: tuple[float, float]  # fractions of the positions
    symbols: int  # of the alphabet: also the token of an unknown position

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> "TrainedOn | None":
        """From the description of a head; None where it says nothing."""
        told = about.get("trained_on")
        return None if told is None else cls(tuple(told["lengths"]), tuple(told["masked"]), told["symbols"])

    @classmethod
    def seen(cls, lengths: Int[Tensor, " S"], masked: Int[Tensor, " S"], symbols: int) -> "TrainedOn":
        """From the lengths of some states and how many of their positions were unknown."""
        fractions: Float[Tensor, " S"] = masked / lengths
        low, high = math.floor(GRAIN * float(fractions.min())) / GRAIN, math.ceil(GRAIN * float(fractions.max())) / GRAIN
        return cls((int(lengths.min()), int(lengths.max())), (low, high), symbols)

    def outside(self, canvases: Prediction | Tokens) -> str | None:
        """In words what about canvases is unlike everything that was seen; None = nothing."""
        tokens = canvases.tokens if isinstance(canvases, Prediction) else canvases
        length, (shortest, longest) = tokens.shape[1], self.lengths
        if not shortest <= length <= longest:
            seen = f"{shortest}" if shortest == longest else f"{shortest} to {longest}"
            return f"the head was trained on {seen} positions, this canvas has {length}: its estimate may be far off; use mi=probe"
        for fraction in (tokens == self.symbols).double().mean(1).tolist():
            if fraction and not self.masked[0] <= fraction <= self.masked[1]:
                return (
                    f"the head was trained with {self.masked[0]:.0%} to {self.masked[1]:.0%} of the positions unknown, here {fraction:.0%} "
                    "are: its estimate may be far off; use mi=probe"
                )
        return None
