"""Fitting a masked diffusion model: mask at a random level, predict what was masked."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from pairmi.backbones.transformer import Transformer, TransformerConfig
from pairmi.training.optimizer import MuonAdamW, Rates
from pairmi.types import PairmiError, Tokens

Gamma = Callable[[Tensor], Tensor]  # noise schedule: the probability of being masked at time t


def linear(t: Float[Tensor, " B"]) -> Float[Tensor, " B"]:
    """Gamma(t) = t."""
    return t


def cosine(t: Float[Tensor, " B"]) -> Float[Tensor, " B"]:
    """Gamma(t) = 1 - cos(pi t / 2)."""
    return 1 - torch.cos(0.5 * torch.pi * t)


@dataclass(frozen=True)
class Levels:
    """A density of t on [0, 1]: uniform, with `share` of it moved into `focus`.

    A proper loss at each noise level is a proper loss under any density of t; the focus is where puzzles live.
    """

    focus: tuple[float, float] = (0.35, 0.80)
    share: float = 0.6

    def __post_init__(self) -> None:
        if not (0 <= self.focus[0] < self.focus[1] <= 1 and 0 <= self.share <= 1):
            raise PairmiError(f"Levels: expected 0 <= focus[0] < focus[1] <= 1 and 0 <= share <= 1, got {self}")

    def draw(self, count: int, rng: torch.Generator) -> Float[Tensor, " B"]:
        """Stratified: one level from each of `count` equally likely slices."""
        u = (torch.arange(count) + torch.rand(count, generator=rng)) / count
        plain, (low, high) = 1 - self.share, self.focus
        focused = low + (high - low) * (u - plain) / max(self.share, 1e-9)
        return torch.where(u < plain, u / max(plain, 1e-9), focused)


def corrupt(tokens: Tokens, t: Float[Tensor, " B"], mask: int, rng: torch.Generator, gamma: Gamma = linear) -> Tokens:
    """Mask each position independently with probability gamma(t) (the paper's eq. 1), at least one per row."""
    chance = torch.rand(tokens.shape, generator=rng)
    hit = chance < gamma(t)[:, None]
    hit |= chance == chance.amin(1, keepdim=True)
    return tokens.masked_fill(hit, mask)


def cross_entropy(model: Transformer, noisy: Tokens, clean: Tokens) -> Float[Tensor, ""]:
    """Sum over the masked positions of -log p(clean | noisy) (the paper's eq. 3)."""
    masked = noisy == model.vocab.size
    return functional.nll_loss(model(noisy).log_probs[masked], clean[masked], reduction="sum")


@runtime_checkable
class Corpus(Protocol):
    """Where clean sequences come from."""

    def about(self) -> dict[str, Any]:
        """What the sequences depend on."""
        ...

    def draw(self, count: int, rng: torch.Generator) -> Int[Tensor, "B L"]:
        """Random training sequences."""
        ...

    def evaluate(self, model: Transformer) -> dict[str, float]:
        """Figures on held-out sequences."""
        ...


@dataclass(frozen=True)
class DenoiseConfig:
    """How a denoiser is trained; the defaults are the Sudoku model's."""

    seed: int = 0
    batch: int = 96
    micro: int = 16  # rows per backward pass: small enough for the cache, and it changes nothing but rounding
    levels: Levels = field(default_factory=Levels)
    rates: Rates = field(default_factory=Rates)


class Denoise:
    """The training job of a `Transformer`."""

    def __init__(self, shape: TransformerConfig, config: DenoiseConfig, corpus: Corpus) -> None:
        torch.manual_seed(config.seed)  # initialisation only; every later draw has its own generator
        self.model, self.config, self.corpus = Transformer(shape), config, corpus
        stacked = {
            f"blocks.{n}.{part}.weight": 3 if part == "qkv" else 1 for n in range(shape.depth) for part in ("qkv", "mix", "up", "down")
        }
        self.optimizer = MuonAdamW(dict(self.model.named_parameters()), stacked, config.rates)

    def about(self) -> dict[str, Any]:
        """Everything that the result depends on but the number of steps."""
        return {"shape": asdict(self.model.config), "training": asdict(self.config), "corpus": self.corpus.about()}

    def tensors(self) -> dict[str, Tensor]:
        """The weights and the optimiser's state."""
        weights = {f"model.{name}": tensor.data for name, tensor in self.model.named_parameters()}
        return weights | {f"optimizer.{name}": tensor for name, tensor in self.optimizer.state.items()}

    def advance(self, step: int, rate: float) -> float:
        """One batch, in pieces of `micro` rows; the mean loss over its masked positions."""
        rng = torch.Generator().manual_seed(self.config.seed * 1_000_003 + step)
        clean = self.corpus.draw(self.config.batch, rng)
        levels = self.config.levels.draw(self.config.batch, rng)
        noisy = corrupt(clean, levels[torch.randperm(len(levels), generator=rng)], self.model.vocab.size, rng)
        masked, total = int((noisy == self.model.vocab.size).sum()), 0.0
        for piece_noisy, piece_clean in zip(noisy.split(self.config.micro), clean.split(self.config.micro), strict=True):
            loss = cross_entropy(self.model, piece_noisy, piece_clean) / masked
            loss.backward()
            total += float(loss.detach())
        self.optimizer.step(step, rate)
        return total

    def evaluate(self) -> dict[str, float]:
        """What the corpus measures."""
        with torch.inference_mode():
            return self.corpus.evaluate(self.model.eval())
