"""Between our token ids (0..V-1, then the mask) and those of a foreign model, which puts special tokens around a sequence."""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from pairmi.info import LARGE, PIECE
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
        if len(self.ids) < LARGE or logits.device.type != "cpu" or logits.requires_grad:
            return functional.log_softmax(self._usable(logits).float(), dim=-1)
        out = logits.new_empty(*logits.shape[:2], len(self.ids), dtype=torch.float32)
        pieces = (values.flatten(0, 1).split(max(1, PIECE // len(self.ids))) for values in (logits, out))
        for some, normal in zip(*pieces, strict=True):  # what is picked stays in the cache: no copy of all logits is made
            torch.log_softmax(self._usable(some).float(), dim=-1, out=normal)
        return out

    def _usable(self, logits: Float[Tensor, "*N C"]) -> Float[Tensor, "*N V"]:
        """Of all columns those of our symbols."""
        runs = self._runs
        if len(runs) == 1:
            return logits[..., runs[0][0] : runs[0][1]]
        if len(runs) <= RUNS:  # six times as fast as picking columns one by one, at large vocabularies
            return torch.cat([logits[..., first:last] for first, last in runs], dim=-1)
        return logits[..., self._table(logits.device)[:-1]]

    @cached_property
    def _runs(self) -> list[tuple[int, int]]:
        """The usable ids, in our order, as runs of consecutive ones: first, and behind the last."""
        ids = np.array(list(self.ids.values()))
        return [(int(run[0]), int(run[-1]) + 1) for run in np.split(ids, np.flatnonzero(np.diff(ids) != 1) + 1)]

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
        if strange := [i for i in listed if i not in known]:
            said = "is no usable symbol of this model's tokenizer (a special token inside the sequence?)"
            raise PairmiError(f"token ids: {strange[0]} {said}")
        return torch.tensor([known[i] for i in listed], dtype=torch.long)


def blanks_beside(symbols: Container[str]) -> str:
    """What can stand for an unknown position beside these symbols."""
    return "".join(blank for blank in "._" if blank not in symbols) or next(blank for blank in SPARE if blank not in symbols)
