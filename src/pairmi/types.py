"""The nouns and the protocols of pairmi: everything that crosses a border between two modules."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Tokens = Int[Tensor, "B L"]  # data symbols are 0..V-1, the mask is V
LogProbs = Float[Tensor, "B L V"]
Hidden = Float[Tensor, "B L D"]
Attention = Float[Tensor, "B L L"]
PerPosition = Float[Tensor, "B L"]
Positions = Bool[Tensor, "B L"]
Ranks = Int[Tensor, "B L"]
PairMatrix = Float[Tensor, "B L L"]
PerRow = Int[Tensor, " B"]

State = Mapping[str, Tensor]  # what a selector remembers of each row: every tensor has the rows in front


class PairmiError(ValueError):
    """The one exception of pairmi for bad input: it says who, what was expected, what came, and what to do."""


@dataclass(frozen=True)
class Vocab:
    """The alphabet of a backbone; in text, each of `blanks` stands for an unknown position."""

    symbols: tuple[str, ...]
    blanks: str = "._"

    @property
    def size(self) -> int:
        """The number of data symbols V, which is also the id of the mask."""
        return len(self.symbols)

    def encode(self, text: str, name: str = "canvas") -> Int[Tensor, " L"]:
        """The token ids of one canvas; `name` is what a message calls it."""
        several = [symbol for symbol in self.symbols if len(symbol) != 1]
        if several:
            raise PairmiError(
                f"{name}: text is ambiguous over symbols of several letters such as {several[0]!r}; give token ids ({self.size} = unknown)"
            )
        ids = {symbol: i for i, symbol in enumerate(self.symbols)} | dict.fromkeys(self.blanks, self.size)
        for place, letter in enumerate(text):
            if letter not in ids:
                alphabet = "".join(self.symbols) if self.size <= 40 else f"{self.size} symbols"
                raise PairmiError(
                    f"{name}: {letter!r} at position {place} is not in the alphabet ({alphabet}; unknown: {' '.join(self.blanks)})"
                )
        return torch.tensor([ids[letter] for letter in text], dtype=torch.long)

    def decode(self, tokens: Int[Tensor, " L"]) -> str:
        """The text of one row of tokens; symbols of several letters are set apart by spaces."""
        letters = (*self.symbols, self.blanks[0])
        apart = " " if any(len(symbol) != 1 for symbol in self.symbols) else ""
        return apart.join(letters[token] for token in tokens.tolist())


@dataclass(frozen=True)
class Prediction:
    """What a backbone says of a batch: normalised log-probabilities and the hidden states behind them."""

    tokens: Tokens
    log_probs: LogProbs
    hidden: Hidden
    attention: Attention | None = None  # averaged over heads and layers, where the backbone was asked for it
    query: Positions | None = None  # whose pairs a rule wants to know; None = all that are unknown

    @property
    def masked(self) -> Positions:
        """The positions that are still unknown."""
        return self.tokens == self.log_probs.shape[-1]

    @property
    def queried(self) -> Positions:
        """The unknown positions whose pairs are asked for: an estimate need not look at any other."""
        return self.masked if self.query is None else self.masked & self.query

    def rows(self, index: Int[Tensor, " R"] | Bool[Tensor, " B"]) -> "Prediction":
        """The same for some of the rows."""
        attention, query = (None if value is None else value[index] for value in (self.attention, self.query))
        return Prediction(self.tokens[index], self.log_probs[index], self.hidden[index], attention, query)

    def to(self, device: torch.device | str) -> "Prediction":
        """The same on another device."""
        attention, query = (None if value is None else value.to(device) for value in (self.attention, self.query))
        return Prediction(self.tokens.to(device), self.log_probs.to(device), self.hidden.to(device), attention, query)


@runtime_checkable
class Backbone(Protocol):
    """A masked sequence model: the conditional marginals p(x_i | the known positions) of every position at once."""

    @property
    def vocab(self) -> Vocab:
        """The alphabet."""
        ...

    @property
    def length(self) -> int | None:
        """The only sequence length it takes; None = any."""
        ...

    def __call__(self, tokens: Tokens) -> Prediction:
        """One pass over a batch of one length; a row's result does not depend on its batch mates."""
        ...


@runtime_checkable
class Limited(Protocol):
    """A backbone that takes sequences up to some length."""

    @property
    def longest(self) -> int | None:
        """The most positions; None = no limit."""
        ...


@runtime_checkable
class Wrapping(Protocol):
    """A backbone around another one, such as a meter: messages name the innermost."""

    @property
    def backbone(self) -> Backbone:
        """What is wrapped."""
        ...


@runtime_checkable
class Objecting(Protocol):
    """A backbone that can tell from a look at a canvas that nothing completes it."""

    def validate(self, canvas: Int[Tensor, " L"]) -> str | None:
        """The reason; None = nothing speaks against it."""
        ...


@runtime_checkable
class RowStreams(Protocol):
    """Random numbers of which each row has its own stream."""

    def uniform(self, purpose: str, *shape: int) -> Float[Tensor, "B ..."]:
        """Float64 numbers in (0, 1), of shape [B, *shape], that depend on the row, the turn and the purpose only."""
        ...


@runtime_checkable
class PairwiseMI(Protocol):
    """An estimate of I(X_i; X_j | known) in nats: symmetric, >= 0, zero on the diagonal and outside queried x queried."""

    def __call__(self, prediction: Prediction, backbone: Backbone, rng: RowStreams) -> PairMatrix:
        """The matrix of each row; `backbone` is metered, so that whoever probes it pays for it."""
        ...


class Reason(IntEnum):
    """Why a position was filled in a pass, or was not."""

    GIVEN = 0
    FILLED = 1
    OUTRANKED = 2  # enough others were more confident
    UNCERTAIN = 3  # its own uncertainty was too high; `amount` is the entropy, or 1 - confidence
    DEPENDENT = 4  # depends on `blocker`, which is filled in the same pass, by `amount` nats
    BUDGET = 5  # its charge, `amount` nats, was over what was left


@dataclass(frozen=True)
class Waiting:
    """For each position the reason of its not being filled, the position that blocks it (or -1), and by how much."""

    reason: Int[Tensor, "B L"]
    blocker: Int[Tensor, "B L"]
    amount: PerPosition

    def rows(self, index: Int[Tensor, " R"] | Bool[Tensor, " B"]) -> "Waiting":
        """The same for some of the rows."""
        return Waiting(self.reason[index], self.blocker[index], self.amount[index])


@dataclass(frozen=True)
class Selection:
    """The masked positions to fill at once, and in which order (0, 1, ...; -1 = not chosen) they were taken."""

    chosen: Positions
    order: Ranks
    waiting: Waiting
    state: State = field(default_factory=dict)


@dataclass(frozen=True)
class Turn:
    """What a selector may look at. Not the drawn symbols: a selection that saw them would bias what is committed."""

    prediction: Prediction
    backbone: Backbone
    rng: RowStreams
    state: State


@runtime_checkable
class Selector(Protocol):
    """A decoding rule: at least one masked position for each row."""

    def __call__(self, turn: Turn) -> Selection:
        """Choose what to fill in this pass."""
        ...


@dataclass(frozen=True)
class Step:
    """One pass of the decoding loop over the rows that were still unfinished."""

    rows: PerRow  # which sequences of the batch
    prediction: Prediction  # what the choice was made from
    selection: Selection
    committed: Positions  # what was really filled: the selection, or under `verify` a part of it
    tokens: Tokens  # afterwards
    passes: PerRow  # of each of these rows so far: the backbone calls that it took part in
    evaluated: PerRow  # of each of these rows so far: the sequences evaluated for it
    probe_calls: int  # of this pass: what the rule spent on the backbone, for all rows together
    probe_rows: int


@dataclass(frozen=True)
class Decoded:
    """Filled canvases with what each of them cost."""

    tokens: Tokens
    passes: PerRow
    rows: PerRow
    probe_calls: int
    probe_rows: int
    steps: tuple[Step, ...] = ()
