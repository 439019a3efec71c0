"""What decoding gives: a step of the loop, what happened in it in words, and a filled canvas."""

from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from pairmi.types import PerRow, Positions, Prediction, Tokens, Vocab, Waiting


@dataclass(frozen=True)
class Step:
    """One pass of the decoding loop over the rows that were still unfinished; counts are on the CPU and of each row so far."""

    rows: PerRow  # which sequences of the batch
    tokens: Tokens  # afterwards
    committed: Positions  # what was really filled: the selection, or under `verify` a part of it
    waiting: Waiting  # why the others were not
    drafted: PerRow  # positions that the rule chose in this pass
    passes: PerRow  # the backbone calls that the row took part in: NFE
    evaluated: PerRow  # the sequences evaluated for it, probes not counted
    probe_rows: PerRow  # the sequences that the rule's estimate evaluated for it
    prediction: Prediction | None = None  # what the choice was made from, where it was asked for


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
