"""Fitting a masked diffusion model: mask at a random level, predict what was masked."""

from copy import deepcopy
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from pairmi.backbones import esmc
from pairmi.backbones.checkpoint import fingerprint
from pairmi.backbones.masked_lm import MaskedLM, Settings
from pairmi.backbones.products import named, products_in
from pairmi.backbones.transformer import Transformer, TransformerConfig
from pairmi.info import confidence
from pairmi.spread.placed import from_here
from pairmi.training.optimizer import MuonAdamW, Rates
from pairmi.training.processes import Processes
from pairmi.training.states import corrupt
from pairmi.types import Backbone, PairmiError, PerPosition, Prediction, Tokens
from studies.growth import deepened
from studies.trajectories import Starts, Trajectories

Trainable = Transformer | MaskedLM


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


def cross_entropy(prediction: Prediction, clean: Tokens) -> Float[Tensor, ""]:
    """Sum over the masked positions of -log p(clean | noisy) (the paper's eq. 3)."""
    return functional.nll_loss(prediction.log_probs[prediction.masked], clean[prediction.masked], reduction="sum")


@runtime_checkable
class Corpus(Protocol):
    """Where clean sequences come from; for canvases in the model's own order it also `Starts` them."""

    def about(self) -> dict[str, Any]:
        """What the sequences depend on."""
        ...

    def draw(self, count: int, rng: torch.Generator) -> Int[Tensor, "B L"]:
        """Random training sequences, of one length."""
        ...

    def evaluate(self, model: Backbone) -> dict[str, float]:
        """Figures on held-out sequences."""
        ...


@dataclass(frozen=True)
class DenoiseConfig:
    """How a denoiser is trained; the defaults are the Sudoku model's."""

    seed: int = 0
    batch: int = 96
    micro: int = 16  # rows per backward pass: small enough for the cache, and it changes nothing but rounding
    followed: int = 64  # rows of the batch that follow the model's own order; the others are masked at random levels
    levels: Levels = field(default_factory=Levels)
    rates: Rates = field(default_factory=Rates)
    precision: str = "float32"  # of the matrix products in training; weights, optimiser and beliefs are in float32
    again: float = 0.0  # the probability that a followed row begins again where the model was wrong
    average: float = 0.0  # how much of the average of the weights a step keeps, in the end; 0 = no average

    def __post_init__(self) -> None:
        named(self.precision, "DenoiseConfig")
        if not 0 <= self.followed <= self.batch or min(self.batch, self.micro) < 1:
            raise PairmiError(f"DenoiseConfig: expected batch and micro >= 1 and 0 <= followed <= batch, got {self}")
        if not 0 <= self.again < 1:
            raise PairmiError(f"DenoiseConfig: again is a probability below 1 (at 1 a row would never start anew), got {self.again}")
        if not 0 <= self.average < 1:
            raise PairmiError(f"DenoiseConfig: average is what a step keeps of the average, at least 0 and below 1, got {self.average}")

    def kept(self, step: int) -> float:
        """How much of the average stays in this step: less at first, so that what came before training is soon forgotten."""
        return min(self.average, (step + 1) / (step + 10))


def matrices(network: Trainable) -> dict[str, int]:
    """The parameters that are matrices inside the blocks, with the number of matrices that are stacked in each: for Muon."""
    if isinstance(network, Transformer):
        parts = {"qkv": 3, "mix": 1, "up": 1, "down": 1}
        return {f"blocks.{n}.{part}.weight": stacked for n in range(network.depth) for part, stacked in parts.items()}
    return {name: 1 for name, parameter in network.named_parameters() if ".layers." in name and parameter.ndim == 2}


def new_network(shape: TransformerConfig | esmc.Shape, device: str) -> Trainable:
    """A network to be trained there, in float32; its weights are drawn on the CPU."""
    if isinstance(shape, TransformerConfig):
        return Transformer(shape).to(device)
    return esmc.build(shape, Settings(device=device, precision="float32")).requires_grad_(True)


class Denoise:
    """The training job of a backbone of our own, from the beginning or from given weights, which may have fewer blocks.

    The network and the optimiser's state are on the device of this process, in float32. Weights are initialised, and everything is
    drawn, on the CPU: a run sees the same masks on every device, and can go on on another one.
    """

    def __init__(
        self,
        shape: TransformerConfig | esmc.Shape,
        config: DenoiseConfig,
        corpus: Corpus,
        start: Trainable | None = None,
        processes: Processes | None = None,
    ) -> None:
        torch.manual_seed(config.seed)  # initialisation only; every later draw has its own generator
        self.shape, self.config, self.corpus, self.processes = shape, config, corpus, processes or Processes()
        self.model: Trainable = new_network(shape, self.processes.device)
        self.start = "" if start is None else fingerprint(start.state_dict())
        if start is not None:
            whole = deepened(start, shape.depth) if isinstance(start, Transformer) else start
            self.model.load_state_dict(whole.state_dict())
        self.trajectories: Trajectories | None = None
        if config.followed:
            if not isinstance(corpus, Starts):
                raise PairmiError(f"Denoise: {type(corpus).__name__} starts no canvases that could be followed; set followed to 0")
            rng = torch.Generator().manual_seed(config.seed)
            self.trajectories = Trajectories(config.followed, corpus, self.model.vocab.size, rng, again=config.again)
        self.optimizer = MuonAdamW(dict(self.model.named_parameters()), matrices(self.model), config.rates)
        self.average = {name: tensor.detach().clone() for name, tensor in self.model.named_parameters()} if config.average else {}

    def about(self) -> dict[str, Any]:
        """Everything that the result depends on but the number of steps."""
        about = {"shape": asdict(self.shape), "training": asdict(self.config), "corpus": self.corpus.about()}
        return about | ({"start": self.start} if self.start else {})

    def tensors(self) -> dict[str, Tensor]:
        """The weights, their average, the optimiser's state and the canvases under way."""
        parts = {"model": {name: tensor.data for name, tensor in self.model.named_parameters()}, "average": self.average}
        parts |= {"optimizer": self.optimizer.state, "trajectories": self.trajectories.tensors() if self.trajectories else {}}
        return {f"{part}.{name}": tensor for part, tensors in parts.items() for name, tensor in tensors.items()}

    def advance(self, step: int, rate: float) -> float:
        """One batch, in pieces of `micro` rows, cut among the processes; the mean loss over its masked positions."""
        rng = torch.Generator().manual_seed(self.config.seed * 1_000_003 + step)
        noisy, clean = self._batch(rng)
        sure, right = torch.zeros(2, *noisy.shape)  # confidences; whether the likeliest symbol is the true one
        tally = torch.zeros(2)  # loss and number of masked positions
        for piece in self.processes.mine(torch.arange(len(noisy)).split(self.config.micro)):
            parts, sure[piece], right[piece] = self._learn(noisy[piece], clean[piece])
            tally += parts
        loss_per_position = self.optimizer.shared_step(step, rate, tally, self.processes, sure, right)
        for name, tensor in self.average.items():
            tensor.lerp_(self.model.get_parameter(name).detach(), 1 - self.config.kept(step))
        if self.trajectories is not None:
            self.trajectories.follow(sure[: self.config.followed], rng, right[: self.config.followed])
        return loss_per_position

    def _learn(self, noisy: Tokens, clean: Tokens) -> tuple[Float[Tensor, " 2"], PerPosition, PerPosition]:
        """The gradients of one piece, added up on the device; back come its part of the tally, the confidences and what is right."""
        with products_in(named(self.config.precision, "DenoiseConfig"), torch.device(self.processes.device).type):
            prediction = self.model(noisy.to(self.processes.device))
        loss = cross_entropy(prediction, clean.to(self.processes.device))
        loss.backward()
        parts = torch.stack([loss.detach(), prediction.masked.sum()])
        log_probs = prediction.log_probs.detach()
        return parts.cpu(), confidence(log_probs).float().cpu(), (log_probs.argmax(2).cpu() == clean).float()

    def _batch(self, rng: torch.Generator) -> tuple[Tokens, Tokens]:
        """Canvases under way, and random masks at stratified levels."""
        fresh = self.config.batch - self.config.followed
        clean, levels = self.corpus.draw(fresh, rng), self.config.levels.draw(fresh, rng)
        noisy = corrupt(clean, levels[torch.randperm(fresh, generator=rng)], self.model.vocab.size, rng)
        if self.trajectories is None:
            return noisy, clean
        way, truth = self.trajectories.batch(rng)
        return torch.cat([way, noisy]), torch.cat([truth, clean])

    def evaluate(self) -> dict[str, float]:
        """What the corpus measures, of the average where there is one."""
        model = deepcopy(self.model)
        model.load_state_dict(self.average, strict=False)
        with torch.inference_mode():
            return self.corpus.evaluate(from_here(model.eval(), self.processes.device))
