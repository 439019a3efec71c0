"""A corpus that is learnt in seconds."""

import time
from typing import Any

import torch
from torch import Tensor

from pairmi.backbones.transformer import Transformer
from pairmi.training.states import corrupt
from studies.denoise import cross_entropy


class Cycles:
    """abcdabcd from a random start, slowly if asked: one known position tells all the others."""

    def __init__(self, pause: float = 0.0) -> None:
        self.pause = pause

    def about(self) -> dict[str, Any]:
        return {"name": "cycles"}

    def draw(self, count: int, rng: torch.Generator) -> Tensor:
        time.sleep(self.pause)
        return (torch.randint(4, (count, 1), generator=rng) + torch.arange(8)) % 4

    def start(self, count: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        clean = self.draw(count, rng)
        return torch.full_like(clean, 4), clean

    def turned(self, noisy: Tensor, clean: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        shift = torch.randint(4, (len(clean), 1), generator=rng)
        return torch.where(noisy == 4, 4, (noisy + shift) % 4), (clean + shift) % 4

    def evaluate(self, model: Transformer) -> dict[str, float]:
        clean = self.draw(32, torch.Generator().manual_seed(99))
        noisy = corrupt(clean, torch.full((32,), 0.5), 4, torch.Generator().manual_seed(98))
        return {"nll": float(cross_entropy(model(noisy), clean) / (noisy == 4).sum())}
