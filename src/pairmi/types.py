"""The nouns and the protocols of pairmi: everything that crosses a border between two modules."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

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
Places = Int[Tensor, "B Q"]  # some positions of each row
PairMatrix = Float[Tensor, "B L L"]
PerRow = Int[Tensor, " B"]
Rows = Int[Tensor, " R"]

State = Mapping[str, Tensor]  # what a selector remembers of each row: every tensor has the rows in front


class PairmiError(ValueError):
    """The one exception of pairmi for bad input: it says who, what was expected, what came, and what to do."""


@runtime_checkable
class Tokenizer(Protocol):
    """How text is cut where symbols have several letters."""

    def encode(self, text: str) -> list[str]:
        """The symbols of a text, all of it; a blank for an unknown position, and what is no symbol as it stands."""

    def decode(self, symbols: list[str]) -> str:
        """The text of symbols and blanks."""


@dataclass(frozen=True)
class Vocab:
    """The alphabet of a backbone; in text, each of `blanks` stands for an unknown position."""

    symbols: tuple[str, ...]
    blanks: str = "._"
    tokenizer: Tokenizer | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.symbols or len(set(self.symbols)) != len(self.symbols):
            raise PairmiError(f"Vocab: expected one or more different symbols, got {len(self.symbols)}, {len(set(self.symbols))} different")
        if not self.blanks or {*self.blanks} & {*self.symbols}:
            raise PairmiError(f"Vocab: blanks must be one or more letters that are no symbols, got {self.blanks!r}")

    def __repr__(self) -> str:
        shown = "".join(self.symbols) if self.size <= 40 and not self._wide else f"{self.size} symbols"
        return f"Vocab({shown}; unknown: {self._unknown})"

    @property
    def size(self) -> int:
        """The number of data symbols V, which is also the id of the mask."""
        return len(self.symbols)

    @property
    def blank(self) -> str:
        """How an unknown position is written."""
        return self.blanks[0] if self.tokenizer is None else self.tokenizer.decode([self.blanks[0]])

    @property
    def _unknown(self) -> str:
        return " ".join(self.blanks) if self.tokenizer is None else self.blank

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {symbol: i for i, symbol in enumerate(self.symbols)} | dict.fromkeys(self.blanks, self.size)

    @cached_property
    def _wide(self) -> str | None:
        """A symbol of several letters, if there is one."""
        return next((symbol for symbol in self.symbols if len(symbol) != 1), None)

    def stripped(self, text: str) -> str:
        """A text without the white space around it, but for what is itself a symbol or a blank."""
        return text.strip("".join({letter for letter in text if letter.isspace() and letter not in self._ids}))

    def encode(self, text: str, name: str = "canvas") -> Int[Tensor, " L"]:
        """The token ids of one canvas; `name` is what a message calls it."""
        if self._wide is not None and self.tokenizer is None:
            raise PairmiError(
                f"{name}: text is ambiguous over symbols of several letters such as {self._wide!r}; give token ids ({self.size} = unknown)"
            )
        letters = list(text) if self.tokenizer is None else self.tokenizer.encode(text)
        for position, letter in enumerate(letters, 1):
            if letter not in self._ids:
                alphabet = (" " if self._wide else "").join(self.symbols) if self.size <= 40 else f"{self.size} symbols"
                raise PairmiError(
                    f"{name}: {letter!r} at position {position} is not in the alphabet ({alphabet}; unknown: {self._unknown})"
                )
        return torch.tensor([self._ids[letter] for letter in letters], dtype=torch.long)

    def decode(self, tokens: Int[Tensor, " L"]) -> str:
        """The text of one row of tokens; without a tokenizer, symbols of several letters are set apart by spaces."""
        letters = self.letters(tokens)
        return ("" if self._wide is None else " ").join(letters) if self.tokenizer is None else self.tokenizer.decode(letters)

    def letters(self, tokens: Int[Tensor, " L"]) -> list[str]:
        """The symbol of each token, a blank for the mask."""
        return [self.symbols[token] if token < self.size else self.blanks[0] for token in tokens.tolist()]

    def offsets(self, tokens: Int[Tensor, " L"]) -> list[tuple[int, int]]:
        """Where in the text of one row each token stands, the spaces before it included; what several write together is the last one's."""
        text, ends = self.decode(tokens), [0]
        for part in (self.decode(tokens[:count]) for count in range(1, len(tokens))):
            ends.append(max(ends[-1], next((n for n, letter in enumerate(part) if text[n : n + 1] != letter), len(part))))
        return list(pairwise([*ends, len(text)]))


@dataclass(frozen=True)
class Prediction:
    """What a backbone says of a batch: normalised log-probabilities and the hidden states behind them."""

    tokens: Tokens
    log_probs: LogProbs
    hidden: Hidden
    attention: Attention | None = None  # averaged over heads and layers, where the backbone was asked for it
    query: Positions | None = None  # whose pairs a rule wants to know; None = all that are unknown
    entropies: PerPosition | None = None  # in nats; the meter fills them in, see `info.entropy_of`
    places: Ranks | None = None  # of its positions in whole canvases, where they are a window of these; None = as they stand

    def __repr__(self) -> str:
        rows, length, size = self.log_probs.shape
        return f"Prediction({rows} rows of {length} positions over {size} symbols, on {self.log_probs.device})"

    @property
    def masked(self) -> Positions:
        """The positions that are still unknown."""
        return self.tokens == self.log_probs.shape[-1]

    @property
    def queried(self) -> Positions:
        """The unknown positions whose pairs are asked for: an estimate need not look at any other."""
        return self.masked if self.query is None else self.masked & self.query

    def _each(self, change: Callable[[Tensor], Tensor]) -> "Prediction":
        rest = (None if value is None else change(value) for value in (self.attention, self.query, self.entropies, self.places))
        return Prediction(change(self.tokens), change(self.log_probs), change(self.hidden), *rest)

    def tensors(self) -> list[Tensor]:
        """What the backbone itself said, with the tokens first."""
        return [x for x in (self.tokens, self.log_probs, self.hidden, self.attention) if x is not None]

    def rows(self, index: Rows | Bool[Tensor, " B"]) -> "Prediction":
        """The same for some of the rows."""
        return self._each(lambda value: value[index])

    def owned(self) -> "Prediction":
        """The same in tensors that can be written to: what a backbone expanded, or made in inference mode, is copied."""
        return self._each(lambda value: value if value.is_contiguous() and not value.is_inference() else value.clone())

    def to(self, device: torch.device | str) -> "Prediction":
        """The same on another device."""
        return self._each(lambda value: value.to(device))


@runtime_checkable
class Backbone(Protocol):
    """A masked sequence model: the conditional marginals p(x_i | the known positions) of every position at once."""

    @property
    def vocab(self) -> Vocab:
        """The alphabet."""

    @property
    def length(self) -> int | None:
        """The only sequence length it takes; None = any."""

    def __call__(self, tokens: Tokens) -> Prediction:
        """One pass over a batch of one length, on the backbone's device; a row's result does not depend on its batch mates."""


@runtime_checkable
class Meter(Backbone, Protocol):
    """A backbone that counts how it is used: all that rules and estimates are given of a model."""

    def __call__(self, tokens: Tokens, owner: PerRow | None = None) -> Prediction:
        """One pass, counted; `owner` says for which canvas of the batch each row is evaluated."""


@runtime_checkable
class RowStreams(Protocol):
    """Random numbers of which each row has its own stream."""

    def uniform(self, purpose: str, *shape: int) -> Float[Tensor, "B ..."]:
        """Float64 numbers in (0, 1), of shape [B, *shape], that depend on the row, the turn and the purpose only."""


@runtime_checkable
class PairwiseMI(Protocol):
    """An estimate of I(X_i; X_j | known) in nats, float64: symmetric, >= 0, zero on the diagonal and outside queried x queried."""

    def __call__(self, prediction: Prediction, backbone: Meter, rng: RowStreams) -> PairMatrix:
        """The matrix of each row; `backbone` is metered, so that whoever probes it pays for it."""


@runtime_checkable
class Charge(Protocol):
    """What filling a position with others costs, in nats, from what is known when it is chosen."""

    def about(self) -> dict[str, Any]:
        """All of it, for the file of the head that it belongs to."""

    def allowed(self, budget: float) -> float:
        """What the charges of a pass may add up to, so that in the mean it loses `budget` nats."""

    def __call__(self, features: Float[Tensor, "B 5"]) -> Float[Tensor, " B"]:
        """Of the sum and the largest of its MI with the members before it, its entropy, their number, and how many are unknown."""


class Reason(IntEnum):
    """Why a position was filled in a pass, or was not."""

    GIVEN = 0
    FILLED = 1
    OUTRANKED = 2  # enough others were more confident
    UNCERTAIN = 3  # its own uncertainty was too high; `amount` is the entropy, or 1 - confidence
    DEPENDENT = 4  # depends on `blocker`, which is filled in the same pass, by `amount` nats
    BUDGET = 5  # its charge, `amount` nats, was over what was left
    LATER = 6  # is in a later block


@runtime_checkable
class Coupling(Protocol):
    """Knows how a drawn symbol moves the other members of a set. What it remembers of a set has the rows in front, like a rule's state."""

    def begin(self, prediction: Prediction, members: Int[Tensor, "B M"], backbone: Meter) -> State:
        """What is known of the sets before anything is drawn; `members` are their positions by rank."""

    def after(self, state: State, rank: PerRow, symbol: PerRow, backbone: Meter) -> State:
        """The same after the member of this rank took this symbol; who probes the backbone for it pays for it."""

    def shifted(self, state: State, rank: PerRow) -> Float[Tensor, "B V"]:
        """Log-probabilities of the member of this rank, given those that were drawn."""


@dataclass(frozen=True)
class Waiting:
    """For each position the reason of its not being filled, the position that blocks it (or -1), and by how much."""

    reason: Int[Tensor, "B L"]
    blocker: Int[Tensor, "B L"]
    amount: PerPosition


@dataclass(frozen=True)
class Selection:
    """The masked positions to fill at once, and in which order (0, 1, ...; -1 = not chosen) they were taken."""

    chosen: Positions
    order: Ranks
    waiting: Waiting
    state: State = field(default_factory=dict)
    coupling: Coupling | None = None  # how its members are drawn; None = from their marginals

    @property
    def members(self) -> Ranks:
        """The chosen positions of each row in their order, then all others."""
        return torch.where(self.chosen, self.order, self.order.shape[1]).argsort(dim=1, stable=True)


@dataclass(frozen=True)
class Turn:
    """What a selector may look at. Not the drawn symbols: a selection that saw them would bias what is committed."""

    prediction: Prediction
    backbone: Meter
    rng: RowStreams
    state: State
    most: int | None = None  # unknown positions of a row, at the most; None = not counted yet


@runtime_checkable
class Selector(Protocol):
    """A decoding rule: at least one masked position for each row."""

    def __call__(self, turn: Turn) -> Selection:
        """Choose what to fill in this pass."""
