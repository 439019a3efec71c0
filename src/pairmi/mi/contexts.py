"""Mutual information of a complete sequence: averaged over contexts in which different parts of it are unknown."""

from dataclasses import dataclass
from itertools import combinations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pairmi.counting import Counting
from pairmi.info import pairs
from pairmi.mi.probe import Probe
from pairmi.types import PairmiError


@dataclass(frozen=True)
class Contexts:
    """Random contexts that leave no pair out: the positions are dealt into `blocks` blocks, and each two blocks are masked once.

    A context masks 2 / blocks of the sequence. One deal costs (blocks - 1) L V rows in all, less what pruning saves.
    """

    blocks: int = 4
    deals: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        if self.blocks < 2 or self.deals < 1:
            raise PairmiError(f"Contexts(blocks={self.blocks}, deals={self.deals}): at least two blocks and one deal")

    def masks(self, length: int) -> Bool[Tensor, "C L"]:
        """Which positions each context masks."""
        rng, masks = torch.Generator().manual_seed(self.seed), []
        for _ in range(self.deals):
            block = torch.randperm(length, generator=rng) % self.blocks
            masks += [(block == one) | (block == other) for one, other in combinations(range(self.blocks), 2)]
        return torch.stack(masks)


def dealt(length: int, blocks: int, seed: int) -> Int[Tensor, " L"]:
    """The number of the block that each position is dealt into, at random, blocks as equal as can be."""
    return torch.randperm(length, generator=torch.Generator().manual_seed(seed)) % blocks


def averaged_mi(meter: Counting, sequence: Int[Tensor, " L"], contexts: Contexts, probe: Probe) -> Float[Tensor, "L L"]:
    """The mean over the contexts in which both positions are unknown, in nats; [probed i, observed j], not symmetrised."""
    masks = contexts.masks(len(sequence)).to(sequence.device)
    masks = masks[masks.any(1)]
    found = probe.measure(meter(sequence.masked_fill(masks, meter.vocab.size)), meter)
    return found.directed.sum(0) / pairs(masks).sum(0).clamp_min(1)
