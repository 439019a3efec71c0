"""Fitting a head to labels: the backbone is frozen, only masked pairs count, every step is a function of (seed, step)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from pairmi.backbones.checkpoint import fingerprint, load_tensors
from pairmi.backbones.identity import identify
from pairmi.info import pairs
from pairmi.mi.head import LowRankConfig, LowRankHead
from pairmi.mi.heads import HEADS, Head, Related, among_layers, related, reporting, take
from pairmi.mi.pair_mlp import PairMLPConfig, PairMLPHead
from pairmi.mi.trained_on import TrainedOn
from pairmi.model import Model, device_of, innermost
from pairmi.spread.placed import from_here, placed
from pairmi.store import Labels, joined_labels, square, triangle
from pairmi.tasks.sudoku.symmetry import random_symmetries, transform, transform_pairs
from pairmi.training.length_buckets import LengthBuckets
from pairmi.training.loop import export
from pairmi.training.losses import LOSSES
from pairmi.training.optimizer import MuonAdamW, Rates
from pairmi.training.processes import Processes
from pairmi.types import Backbone, PairmiError


@dataclass(frozen=True)
class DistillConfig:
    """How a head is trained."""

    seed: int = 0
    batch: int = 32
    loss: str = "mse"
    augment: int = 0  # copies of every state, each moved by a symmetry of Sudoku: as good as the backbone is equivariant
    validation: int = 256  # states
    rates: Rates = field(default_factory=lambda: Rates(muon=0.03, adam=6e-3))
    precision: str = "float32"  # of the backbone's matrix products; the head itself learns in float32

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise PairmiError(f"train head: unknown loss {self.loss!r}; known: {', '.join(LOSSES)}")
        if min(self.batch, self.validation) < 1 or self.augment < 0:
            raise PairmiError(
                f"train head: batch and validation must be >= 1 and augment >= 0, got {self.batch}, {self.validation} and {self.augment}"
            )


MOST_SYMBOLS = 64  # whose marginals a head is shown whole
SIZES = ("inner", "forms", "rank", "mixer", "places", "hops", "edges", "reach", "last_reach")  # of a low-rank head: what its user chooses


def width_of(backbone: Backbone, length: int) -> int:
    """Of the hidden states that a backbone reports, all layers together: read from what it says of an unknown sequence."""
    with torch.no_grad():
        width = backbone(torch.full((1, length), backbone.vocab.size, device=device_of(backbone))).hidden.shape[2]
    if not width:
        raise PairmiError(f"train head: {type(backbone).__name__} reports no hidden states (width 0), and these are what a head reads")
    return int(width)


def make_head(kind: str, model: Model, layers: Sequence[int], sizes: Mapping[str, int], seed: int, length: int = 8) -> Head:
    """A fresh head for a backbone that reports these layers (none = what it always reports); for `sizes` of the low-rank head see `SIZES`.

    `length` is that of the canvas that a backbone of any length is asked for the width of its hidden states with.
    """
    if kind not in HEADS:
        raise PairmiError(f"train head: unknown kind {kind!r}; known: {', '.join(HEADS)}")
    width, count, symbols = width_of(reporting(model.backbone, layers), model.length or length), len(layers) or 1, model.vocab.size
    torch.manual_seed(seed)  # initialisation only; every later draw has its own generator
    if kind == PairMLPHead.kind:
        return PairMLPHead(PairMLPConfig(width))
    inner = innermost(model)
    relations = inner.relation_width if isinstance(inner, Related) else 0  # a backbone that relates its positions has no fixed ones
    shown, length = symbols if symbols <= MOST_SYMBOLS else 0, 0 if relations else model.length or 0
    return LowRankHead(LowRankConfig(width // count, shown, count, length, relations=relations, **sizes))


def started(head: Head, file: Path, layers: Sequence[int] = ()) -> str:
    """Let a fresh head begin with the weights of another, which may have been made for another backbone; their fingerprint.

    Where that backbone has grown into this one (`deepened`), its streams mean much the same. The other may have fewer hops: fresh ones
    correct nothing yet. It may read some of these layers only: the others say nothing yet.
    """
    tensors, about = load_tensors(file)
    known, read = fingerprint(tensors), about.get("layers") or []
    if isinstance(head, LowRankHead) and about.get("head") == head.kind and read and {*read} < {*layers}:
        tensors = tensors | {"inner.weight": among_layers(tensors["inner.weight"], read, layers, head.config.width)}
    if about.get("head") != head.kind or not take(head, tensors, fresh="hops."):
        raise PairmiError(f"train head: {file} holds no {head.kind} head of this shape; expected {head.about()}")
    return known


class Distill:
    """The training job of a head. The backbone sees every state once, at the start; its hidden states are kept in float16.

    Both networks and the optimiser's state are on the device of this process; labels and what the
    backbone said of them stay on the CPU, and go there batch by batch. The states of some grids may be of models of their `own`, all
    with the same weights, such as one a structure. `held_out` is validated on in the place of the validation grids.
    """

    def __init__(
        self,
        model: Model,
        head: Head,
        layers: Sequence[int],
        labels: Labels,
        settings: Mapping[str, Any],
        config: DistillConfig,
        processes: Processes | None = None,
        start: str = "",
        own: Mapping[str, Model] | None = None,
        held_out: Labels | None = None,
    ) -> None:
        self.start = start  # the fingerprint of the weights that the head begins with, if they are not drawn
        if settings["backbone"] != identify(model):
            raise PairmiError(
                f"train head: the labels were made by weights {settings['backbone']}, but model {model.name!r} has {identify(model)}; "
                "label again with this backbone, or choose the one that labelled"
            )
        self.layers, self.symbols = list(layers), model.vocab.size
        self.processes = processes or Processes()
        device = self.processes.device
        self.head, self.config, self.settings, self.states = head.to(device), config, settings, len(labels)
        rng, train = torch.Generator().manual_seed(config.seed), labels if held_out is not None else labels.split("train")
        held_out = labels.split("validation") if held_out is None else held_out
        self.train = joined_labels([train, *(moved(train, rng) for _ in range(config.augment))])
        exact = torch.nonzero(held_out.draws == 0)[:, 0]  # the noise of drawn labels would count as error
        self.held_out = held_out.pick((exact if len(exact) else torch.arange(len(held_out)))[: config.validation])
        if not len(self.train) or not len(self.held_out):
            raise PairmiError(f"train head: {len(labels)} labelled states leave nothing to train or to validate on; make more")
        for part, some in (("train", self.train), ("validate", self.held_out)):
            if not some.has_pair(self.symbols):
                raise PairmiError(
                    f"train head: none of the {len(some)} states to {part} on has a pair of unknown positions that was measured; "
                    "label states with at least two unknown positions"
                )
        self.optimizer = MuonAdamW(dict(head.named_parameters()), dict.fromkeys(head.matrices, 1), config.rates)

        def there(backbone: Backbone) -> Backbone:
            return from_here(placed(reporting(backbone, layers), device, config.precision), device)

        theirs = {grid: there(one.backbone) for grid, one in (own or {}).items()}
        kept: dict[str, Any] = {"device": device, "own": theirs, "brief": self.symbols > MOST_SYMBOLS}
        self.buckets = LengthBuckets(there(model.backbone), self.train, half=True, **kept)
        self.held_out_buckets = LengthBuckets(there(model.backbone), self.held_out, **kept)

    def about(self) -> dict[str, Any]:
        """Everything that the result depends on but the number of steps."""
        return {
            "head": self.head.kind,
            "config": self.head.about(),
            "layers": self.layers,
            "backbone": self.settings["backbone"],
            "labels": {**self.settings, "count": self.states},
            "training": asdict(self.config),
            "trained_on": asdict(TrainedOn.seen(self.train.lengths, self.train.masked, self.symbols)),
        } | ({"start": self.start} if self.start else {})

    def tensors(self) -> dict[str, Tensor]:
        """The weights and the optimiser's state."""
        weights = {f"model.{name}": tensor.data for name, tensor in self.head.named_parameters()}
        return weights | {f"optimizer.{name}": tensor for name, tensor in self.optimizer.state.items()}

    def advance(self, step: int, rate: float) -> float:
        """One batch, cut among the processes; its loss."""
        index = batch_of(len(self.train), self.config.batch, step, self.config.seed)
        tally = torch.zeros(2)  # error and what it is a mean over
        for part in self.processes.mine(torch.arange(len(index)).tensor_split(self.processes.count)):
            for known, true, backbone in self.buckets.among(index[part]):
                predicted, within = triangle(related(self.head, backbone).estimate(known)), triangle(pairs(known.masked)) & true.isfinite()
                error, weight = LOSSES[self.config.loss](predicted, true.nan_to_num(0), within)
                error.backward()
                tally += torch.stack([error.detach(), weight]).cpu()
        return self.optimizer.shared_step(step, rate, tally, self.processes)

    def evaluate(self) -> dict[str, float]:
        """On validation grids: R^2 over all known pairs, and the mean absolute error in nats."""
        found = []
        with torch.no_grad():
            for known, mi, backbone in self.held_out_buckets.among(torch.arange(len(self.held_out))):
                predicted, within = triangle(related(self.head, backbone).estimate(known)), triangle(pairs(known.masked)) & mi.isfinite()
                found.append(torch.stack([predicted[within].clamp_min(0), mi[within]]).double())
        predicted, true = torch.cat(found, dim=1)
        error = predicted - true
        unexplained = error.square().sum() / (true - true.mean()).square().sum().clamp_min(1e-12)
        return {"r2": 1 - float(unexplained), "mae": float(error.abs().mean())}


def moved(labels: Labels, rng: torch.Generator) -> Labels:
    """The same states under random symmetries of Sudoku: cells and digits change places, and pairs with them."""
    source, digits = random_symmetries(len(labels), rng)
    tokens, entropies = transform(labels.tokens, source, digits), labels.entropies.gather(1, source)
    pieces = zip(labels.mi.split(256), source.split(256), strict=True)
    mi = [triangle(transform_pairs(square(values, tokens.shape[1]), where)) for values, where in pieces]
    return replace(labels, tokens=tokens, entropies=entropies, mi=torch.cat(mi))


def batch_of(states: int, batch: int, step: int, seed: int) -> Int[Tensor, " B"]:
    """Which states belong to a step: every state once in each round, in a new order."""
    first, last = step * batch // states, ((step + 1) * batch - 1) // states
    orders = [torch.randperm(states, generator=torch.Generator().manual_seed(seed * 7_368_787 + n)) for n in range(first, last + 1)]
    start = step * batch - first * states
    return torch.cat(orders)[start : start + batch]


export_head = partial(export, kind="head")  # the head of a checkpoint, with for which backbone it is
