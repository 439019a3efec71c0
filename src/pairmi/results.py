"""What decoding gives back: a filled canvas, and what happened to it."""

from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from pairmi.types import Vocab


@dataclass(frozen=True)
class Pass:
    """What happened to one canvas in one pass, in words."""

    filled: dict[int, str]  # position -> symbol
    waiting: dict[int, str]  # position -> why it was not filled
    text: str  # afterwards


@dataclass(frozen=True)
class Result:
    """One filled canvas with what it cost."""

    tokens: Int[Tensor, " L"]
    vocab: Vocab
    passes: int  # backbone calls that this canvas took part in (NFE), without those of probing
    rows: int  # sequences evaluated for it, without the probes
    probe_rows: int  # sequences evaluated to probe for it
    steps: tuple[Pass, ...] = ()  # only where they were asked for

    @property
    def text(self) -> str:
        """The filled canvas."""
        return self.vocab.decode(self.tokens)

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """Where in `text` each token stands."""
        return self.vocab.offsets(self.tokens)

    def __repr__(self) -> str:
        text, probes = self.text, f" + {self.probe_rows} for probing" if self.probe_rows else ""
        return f"Result({text if len(text) <= 81 else text[:78] + '...'}, {self.passes} passes, {self.rows} rows{probes})"
