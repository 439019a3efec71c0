"""States to learn from, of sequences of which nothing more is known than how they look."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from pairmi.commit import Sampling
from pairmi.model import Model
from pairmi.training.states import LABELS, PATIENCE, PROTEIN_RULES, State, distinct, grid_name, length_of, masked, short_hash, visited
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
        digest = short_hash(" ".join(grid_name(tokens) for tokens in (*self.complete, *self.canvases)).encode())
        settings = {"generating": self.generating, "each": self.each, "rules": self.rules}
        return {"name": "sequences", "sequences": len(self.complete), "canvases": len(self.canvases), "fingerprint": digest} | settings

    def draw(self, model: Model, seed: int, shard: int, count: int) -> list[State]:
        """Trajectories, then masked sequences, then more trajectories, until there are enough; no state twice, none without a pair."""
        length = length_of((len(tokens) for tokens in (*self.complete, *self.canvases)), seed, shard)
        chosen = distinct(self._states(model, length, count, shard, np.random.default_rng((LABELS + seed, shard))), count)
        if len(chosen) < count:
            raise PairmiError(
                f"labels: sequences of {length} positions give {len(chosen)} different states, {count} are wanted; give more or longer ones"
            )
        return chosen

    def _states(self, model: Model, length: int, count: int, shard: int, rng: np.random.Generator) -> Iterator[State]:
        yield from islice(self._visited(model, length, count, shard, rng), round(count * self.generating))
        pool = [(tokens, grid_name(tokens)) for tokens in self.complete if len(tokens) == length]
        lots = ([pool[n] for n in rng.integers(len(pool), size=count)] for _ in range(PATIENCE if pool else 0))
        yield from masked(lots, model.vocab.size, int(rng.integers(2**31)), range(2, length + 1))
        yield from islice(self._visited(model, length, count, shard, rng), PATIENCE * count)

    def _visited(self, model: Model, length: int, count: int, shard: int, rng: np.random.Generator) -> Iterator[State]:
        """What rules see on their way, in rounds of one trajectory for every few states; it ends where none of them sees anything."""
        starts = [tokens for tokens in self.canvases if len(tokens) == length] or [torch.full((length,), model.vocab.size)]
        runs, turn, in_vain = max(1, round(count * self.generating / self.each)), shard, 0
        while in_vain < len(self.rules):
            boards = torch.stack([starts[n] for n in rng.integers(len(starts), size=runs)])
            found = visited(model, boards, "generating", Sampling(int(rng.integers(2**31))), self.rules, self.each, turn)
            if not found:  # a rule that fills everything in one pass: let another one begin
                turn += 1
            in_vain = 0 if found else in_vain + 1
            yield from found
