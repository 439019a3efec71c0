"""States of proteins to learn from: natural sequences under random masks, and what decoders see when they generate."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
import torch

from pairmi.decoding import Sampling
from pairmi.spec import Model
from pairmi.tasks.protein.fasta import Record
from pairmi.training.denoise import Levels, corrupt
from pairmi.training.states import LABELS, State, Ways, visited
from pairmi.types import PairmiError

RULES = ("sequential", "sequential:by=random", "top-k:k=4", "top-k:k=8,by=random", "eb:budget=8", "maskgit:steps=15")
GOLDEN = (5**0.5 - 1) / 2
PATIENCE = 50  # rounds of masks in search of different states


def family_name(cluster: str) -> str:
    """A name for a family, by whose hash its states are put into the training, validation or test part."""
    return hashlib.sha256(cluster.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class ProteinStates:
    """A share of the states from trajectories that begin with nothing; the rest are natural sequences at t ~ U[0, 1].

    The states of a shard have one length, so that they are probed together; over the shards lengths come as often as among the
    sequences. A family of n sequences counts as the root of n, as when a model is trained.
    """

    records: Sequence[Record]
    generating: float = 0.4
    each: int = 2  # states from one trajectory, at different random passes
    rules: tuple[str, ...] = RULES
    balance: float = 0.5

    def about(self) -> dict[str, Any]:
        """What they depend on."""
        digest = hashlib.sha256("".join(f"{record.cluster} {record.text}\n" for record in self.records).encode()).hexdigest()[:16]
        settings = {"generating": self.generating, "each": self.each, "rules": self.rules, "balance": self.balance}
        return {"name": "protein", "sequences": len(self.records), "fingerprint": digest} | settings

    def length(self, seed: int, shard: int) -> int:
        """Of the states of a shard: quantiles of the sequences' lengths, evenly spread however many shards there are."""
        lengths = sorted(len(record.text) for record in self.records)
        place = (np.random.default_rng(LABELS + seed).random() + GOLDEN * shard) % 1
        return lengths[int(place * len(lengths))]

    def draw(self, model: Model, seed: int, shard: int, count: int) -> list[State]:
        """Trajectories first; what is missing then is filled up with masked sequences. No state twice, none without a pair."""
        length, rng = self.length(seed, shard), np.random.default_rng((LABELS + seed, shard))
        boards = torch.full((round(count * self.generating / self.each), length), model.vocab.size)
        found = visited(model, boards, "generating", Sampling(int(rng.integers(2**31))), Ways(self.rules, self.each, shard))
        natural = islice(self._masked(model, length, count, rng), PATIENCE * count)
        chosen: dict[tuple[int, ...], State] = {}
        for state in chain(found, natural):
            if len(chosen) == count:
                break
            if 2 <= int((state.tokens == model.vocab.size).sum()) < length:
                chosen.setdefault(tuple(state.tokens.tolist()), state)
        if len(chosen) < count:
            raise PairmiError(
                f"labels: sequences of {length} residues give {len(chosen)} different states, {count} are wanted; "
                "give more or longer sequences, or a smaller --shard"
            )
        return list(chosen.values())

    def _masked(self, model: Model, length: int, count: int, rng: np.random.Generator) -> Iterator[State]:
        """Sequences of one length, masked at stratified levels, without end."""
        sizes = Counter(record.cluster for record in self.records)
        mine = [record for record in self.records if len(record.text) == length]
        weights = np.array([sizes[record.cluster] ** -self.balance for record in mine])
        masks = torch.Generator().manual_seed(int(rng.integers(2**31)))
        while True:
            drawn = [mine[n] for n in rng.choice(len(mine), count, p=weights / weights.sum())]
            clean = torch.stack([model.vocab.encode(record.text, record.name) for record in drawn])
            levels = Levels(share=0.0).draw(count, masks)
            noisy = corrupt(clean, levels[torch.randperm(count, generator=masks)], model.vocab.size, masks)
            for tokens, record in zip(noisy, drawn, strict=True):
                yield State(tokens, "uniform", "", family_name(record.cluster))
