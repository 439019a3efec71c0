"""Proteins as training data: batches of one length, families balanced, validation on families that were not seen."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from pairmi.backbones.checkpoint import fingerprint
from pairmi.backbones.esmc import TRANSLATION
from pairmi.bench.sequence_sets import residue_counts
from pairmi.decoding import batches
from pairmi.tasks.protein.fasta import Record, read_proteins
from pairmi.types import Backbone, PairmiError

LEVELS = (0.15, 0.5, 0.85, 1.0)  # masked shares at which a model is validated


def unigram_perplexity(training: Sequence[str], held_out: Sequence[str]) -> float:
    """What knowing the residues' frequencies and nothing else comes to: exp of the cross-entropy; infinite if one was never seen."""
    counts, other = residue_counts(training), residue_counts(held_out)
    seen = other > 0
    if (counts[seen] == 0).any():
        return float("inf")
    return float(np.exp(-(other[seen] / other.sum()) @ np.log(counts[seen] / counts.sum())))


def masked_perplexity(backbone: Backbone, texts: Sequence[str], level: float, seed: int = 0, batch: int = 64) -> float:
    """exp of the mean of -log p over the masked positions, a share `level` of each sequence (at least one), at random."""
    rng = torch.Generator().manual_seed(seed)
    total, count = 0.0, 0
    tokens = [backbone.vocab.encode(text) for text in texts]
    for places in batches(tokens, batch):
        clean = torch.stack([tokens[place] for place in places])
        rank = torch.rand(clean.shape, generator=rng).argsort(1).argsort(1)
        masked = rank < max(1, round(level * clean.shape[1]))
        log_probs = backbone(clean.masked_fill(masked, backbone.vocab.size)).log_probs.gather(2, clean[:, :, None])[:, :, 0]
        total, count = total - float(log_probs[masked].double().sum()), count + int(masked.sum())
    return float(np.exp(total / count))


@dataclass(frozen=True)
class ProteinCorpus:
    """Training sequences by length; a family of n sequences counts n^(1 - balance)."""

    training: Sequence[Record]
    validation: Sequence[Record]
    balance: float = 0.5
    validated_on: int = 256  # sequences, one a family
    _tokens: dict[int, Int[Tensor, "N L"]] = field(init=False, repr=False)
    _weights: dict[int, Float[Tensor, " N"]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        families = {record.cluster for record in self.validation} & {record.cluster for record in self.training}
        if families:
            raise PairmiError(
                f"train denoiser: family {sorted(families)[0]} is in the training and in the validation file ({len(families)} in all)"
            )
        sizes: dict[str, int] = {}
        for record in self.training:
            sizes[record.cluster] = sizes.get(record.cluster, 0) + 1
        tokens: dict[int, list[Tensor]] = {}
        weights: dict[int, list[float]] = {}
        for record in self.training:
            tokens.setdefault(len(record.text), []).append(TRANSLATION.vocab.encode(record.text, record.name))
            weights.setdefault(len(record.text), []).append(sizes[record.cluster] ** -self.balance)
        object.__setattr__(self, "_tokens", {length: torch.stack(rows) for length, rows in tokens.items()})
        object.__setattr__(self, "_weights", {length: torch.tensor(rows) for length, rows in weights.items()})

    def about(self) -> dict[str, Any]:
        """What the sequences depend on."""
        counts = {"training": len(self.training), "validation": len(self.validation), "balance": self.balance}
        prints = {str(length): rows for length, rows in self._tokens.items()}
        return {"name": "protein", "fingerprint": fingerprint(prints), "unigram": self.unigram} | counts

    @property
    def unigram(self) -> float:
        """The perplexity of the validation sequences under the residue frequencies of the training sequences."""
        return unigram_perplexity([record.text for record in self.training], [record.text for record in self.validation])

    def draw(self, count: int, rng: torch.Generator) -> Int[Tensor, "B L"]:
        """Sequences of one random length; over all lengths each comes as often as its weight says."""
        lengths = list(self._tokens)
        total = torch.stack([self._weights[length].sum() for length in lengths])
        length = lengths[int(torch.multinomial(total, 1, generator=rng))]
        return self._tokens[length][torch.multinomial(self._weights[length], count, replacement=True, generator=rng)]

    def evaluate(self, model: Backbone) -> dict[str, float]:
        """The perplexity of masked residues by the masked share, on one sequence of each validation family."""
        families = {record.cluster: record.text for record in reversed(self.validation)}
        some = list(families.values())[: self.validated_on]
        return {f"perplexity_{round(100 * level)}": masked_perplexity(model, some, level) for level in LEVELS}


def read_corpus(data: Path, validation: Path | None, longest: int | None = None) -> ProteinCorpus:
    """Training and validation sequences from FASTA files; from one alone, every tenth of its families is put aside for validation."""
    records = read_proteins(data, longest)
    if validation is not None:
        return ProteinCorpus(records, read_proteins(validation, longest))
    held_out = set(sorted({record.cluster for record in records})[::10])
    parts = [[record for record in records if (record.cluster in held_out) == out] for out in (False, True)]
    if not parts[0]:
        raise PairmiError(f"train denoiser: {data} holds one family only; give more, or --validation FILE")
    return ProteinCorpus(parts[0], parts[1])
