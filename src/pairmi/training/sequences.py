"""States to learn from, of sequences of which nothing more is known than how they look."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from pairmi.commit import Sampling
from pairmi.model import Model
from pairmi.training.denoise import Levels, corrupt
from pairmi.training.states import GOLDEN, LABELS, PATIENCE, PROTEIN_RULES, State, Ways, distinct, grid_name, visited
from pairmi.types import PairmiError


@dataclass(frozen=True)
class SequenceStates:
    """A share of the states from trajectories; the rest complete sequences at t ~ U[0, 1], where there are any.

    Trajectories begin with given canvases, or with nothing at the length of a sequence. The states of a shard have one length.
    """

    complete: Sequence[Int[Tensor, " _"]]
    canvases: Sequence[Int[Tensor, " _"]] = ()
    generating: float = 0.4
    each: int = 2  # states from one trajectory, at different random passes
    rules: tuple[str, ...] = PROTEIN_RULES

    def about(self) -> dict[str, Any]:
        """What they depend on."""
        names = [grid_name(tokens) for tokens in (*self.complete, *self.canvases)]
        digest = hashlib.sha256(" ".join(names).encode()).hexdigest()[:16]
        settings = {name: value for name, value in asdict(self).items() if name not in ("complete", "canvases")}
        return {"name": "sequences", "sequences": len(self.complete), "canvases": len(self.canvases), "fingerprint": digest} | settings

    def draw(self, model: Model, seed: int, shard: int, count: int) -> list[State]:
        """Trajectories, then masked sequences, then more trajectories, until there are enough; no state twice, none without a pair."""
        lengths = sorted(len(tokens) for tokens in (*self.complete, *self.canvases))
        length = lengths[int((np.random.default_rng(LABELS + seed).random() + GOLDEN * shard) % 1 * len(lengths))]
        rng = np.random.default_rng((LABELS + seed, shard))
        found = chain(
            islice(self._visited(model, length, count, shard, rng), round(count * self.generating)),
            islice(self._masked(model, length, count, rng), PATIENCE * count),
            islice(self._visited(model, length, count, shard, rng), PATIENCE * count),
        )
        chosen = distinct((state for state in found if int((state.tokens == model.vocab.size).sum()) >= 2), count)
        if len(chosen) < count:
            raise PairmiError(
                f"labels: sequences of {length} positions give {len(chosen)} different states, {count} are wanted; give more or longer ones"
            )
        return chosen

    def _visited(self, model: Model, length: int, count: int, shard: int, rng: np.random.Generator) -> Iterator[State]:
        """What rules see on their way, in rounds of one trajectory for every few states, without end."""
        starts = [tokens for tokens in self.canvases if len(tokens) == length] or [torch.full((length,), model.vocab.size)]
        runs = max(1, round(count * self.generating / self.each))
        while True:
            boards = torch.stack([starts[int(n)] for n in rng.integers(len(starts), size=runs)])
            yield from visited(model, boards, "generating", Sampling(int(rng.integers(2**31))), Ways(self.rules, self.each, shard))

    def _masked(self, model: Model, length: int, count: int, rng: np.random.Generator) -> Iterator[State]:
        """Sequences of one length, masked at stratified levels, without end; nothing where there is none."""
        mine = [tokens for tokens in self.complete if len(tokens) == length]
        masks = torch.Generator().manual_seed(int(rng.integers(2**31)))
        while mine:
            clean = torch.stack([mine[int(n)] for n in rng.integers(len(mine), size=count)])
            levels = Levels(share=0.0).draw(count, masks)
            noisy = corrupt(clean, levels[torch.randperm(count, generator=masks)], model.vocab.size, masks)
            for tokens, whole in zip(noisy, clean, strict=True):
                yield State(tokens, "uniform", "", grid_name(whole))
