"""Between our token ids (0..V-1, then the mask) and those of a foreign model, which puts special tokens around a sequence."""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from pairmi.types import LogProbs, PairmiError, Places, Tokenizer, Tokens, Vocab

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"  # the standard amino acids: the alphabet of a protein model, in this order unless it has its own
RUNS = 16  # of consecutive ids, up to which columns are taken run by run
SPARE = "□▢⬚\ue000"  # the first that is free stands for an unknown position where "." and "_" are symbols themselves


@dataclass(frozen=True)
class Translation:
    """The usable symbols with the ids that a model gives them; everything else that it knows is hidden."""

    ids: Mapping[str, int]  # of the usable symbols, in our order
    mask: int
    before: tuple[int, ...]  # special tokens in front of every sequence
    after: tuple[int, ...]
    tokenizer: Tokenizer | None = None  # of text, where symbols have several letters

    @property
    def vocab(self) -> Vocab:
        """Our alphabet."""
        return Vocab(tuple(self.ids), blanks_beside(self.ids), self.tokenizer)

    @property
    def largest(self) -> int:
        """The largest id in use: the model needs more logit columns than this."""
        return max(*self.ids.values(), self.mask, *self.before, *self.after)

    @property
    def added(self) -> int:
        """How many special tokens a sequence gets."""
        return len(self.before) + len(self.after)

    def inputs(self, tokens: Tokens) -> Int[Tensor, "B T"]:
        """What the model reads: T = L + the special tokens."""
        table = self._table(tokens.device)
        before, after = (table.new_tensor(edge).expand(len(tokens), -1) for edge in (self.before, self.after))
        return torch.cat([before, table[tokens], after], dim=1)

    def within(self, values: Float[Tensor, "B T *rest"]) -> Float[Tensor, "B L *rest"]:
        """What the model says of our positions, without that of its special tokens."""
        return values[:, len(self.before) : values.shape[1] - len(self.after)]

    def outputs(self, places: Places, shift: int) -> Places:
        """Where among its T outputs the model speaks of these of our positions."""
        return (places + len(self.before) - shift).clamp_min(0)

    def log_probs(self, logits: Float[Tensor, "B L C"]) -> LogProbs:
        """The usable columns, normalised among themselves in float32."""
        runs = self._runs
        if len(runs) <= RUNS:  # six times as fast as picking columns one by one, at large vocabularies
            usable = torch.cat([logits[:, :, first:last] for first, last in runs], dim=2)
        else:
            usable = logits[:, :, self._table(logits.device)[:-1]]
        return functional.log_softmax(usable.float(), dim=-1)

    @cached_property
    def _runs(self) -> list[tuple[int, int]]:
        """The usable ids, in our order, as runs of consecutive ones: first, and behind the last."""
        ids = list(self.ids.values())
        breaks = [0, *(n for n in range(1, len(ids)) if ids[n] != ids[n - 1] + 1), len(ids)]
        return [(ids[start], ids[end - 1] + 1) for start, end in pairwise(breaks)]

    def _table(self, device: torch.device) -> Int[Tensor, " N"]:
        """The model's id of each of ours, the mask last; made once for a device."""
        if device not in self._tables:
            self._tables[device] = torch.tensor([*self.ids.values(), self.mask], device=device)
        return self._tables[device]

    @cached_property
    def _tables(self) -> dict[torch.device, Tensor]:
        return {}

    def stripped(self, ids: list[int]) -> list[int]:
        """The model's ids of a sequence without the special tokens around it, if they are there."""
        first = len(self.before) if tuple(ids[: len(self.before)]) == self.before else 0
        last = len(ids) - len(self.after) if tuple(ids[len(ids) - len(self.after) :]) == self.after else len(ids)
        return ids[first : max(first, last)]

    def ours(self, ids: Int[Tensor, " T"]) -> Int[Tensor, " L"]:
        """Our ids of what the model's own tokenizer made of a sequence, with or without the special tokens around it."""
        listed = self.stripped(ids.tolist())
        known = {theirs: our for our, theirs in enumerate(self.ids.values())} | {self.mask: len(self.ids)}
        strange = [i for i in listed if i not in known]
        if strange:
            raise PairmiError(
                f"token ids: {strange[0]} is no usable symbol of this model's tokenizer (a special token inside the sequence?)"
            )
        return torch.tensor([known[i] for i in listed], dtype=torch.long)


def blanks_beside(symbols: Container[str]) -> str:
    """What can stand for an unknown position beside these symbols."""
    return "".join(blank for blank in "._" if blank not in symbols) or next(blank for blank in SPARE if blank not in symbols)


def around(ids: list[Any], mask: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The special tokens in front of and behind the mask in a tokenised sequence that is one mask."""
    place = ids.index(mask)
    return tuple(ids[:place]), tuple(ids[place + 1 :])
