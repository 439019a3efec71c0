"""A tiny backbone with random weights, states for it and labels: what heads are tested on."""

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pairmi.backbones.checkpoint import save_tensors
from pairmi.backbones.identity import identify
from pairmi.backbones.transformer import Transformer, TransformerConfig
from pairmi.mi.head import LowRankConfig, LowRankHead
from pairmi.mi.pair_mlp import PairMLPConfig, PairMLPHead
from pairmi.mi.probe import Probe
from pairmi.mi.table import TableConfig, TableHead
from pairmi.model import Model
from pairmi.store import Labels
from pairmi.training.labels import Effort, describe, label
from pairmi.training.states import State

SHAPE = TransformerConfig(symbols="abcd", length=8, width=16, depth=2, heads=2)


def tiny(seed: int = 0, shape: TransformerConfig = SHAPE, attention: bool = False) -> Model:
    """With random weights and sharp attention, so that its positions depend on each other."""
    torch.manual_seed(seed)
    transformer = Transformer(shape, attention).eval().requires_grad_(False)
    for parameter in transformer.parameters():
        if parameter.ndim == 2:
            torch.nn.init.normal_(parameter, std=0.8)
        elif parameter.ndim == 3:
            parameter.fill_(6.0)
    transformer.position.mul_(0.3)
    for block in transformer.blocks:
        block.down.weight.zero_()
    return Model(transformer, "tiny")


def sudoku(**changes: Any) -> Model:
    return tiny(shape=TransformerConfig(width=8, depth=1, heads=1), **changes)


@dataclass(frozen=True)
class RandomStates:
    """Random sequences under random masks, slowly if asked."""

    pause: float = 0.0

    def about(self) -> dict[str, Any]:
        return {"name": "random"}

    def draw(self, model: Model, seed: int, shard: int, count: int) -> list[State]:
        time.sleep(self.pause)
        rng = torch.Generator().manual_seed(1000 * seed + shard)
        complete = torch.randint(model.vocab.size, (count, model.length), generator=rng)
        level = torch.rand(count, 1, generator=rng)
        hidden = torch.rand(complete.shape, generator=rng) < level
        hidden[:, :2] = True
        tokens = complete.masked_fill(hidden, model.vocab.size)
        names = [hashlib.sha256(bytes(grid.tolist())).hexdigest()[:16] for grid in complete]
        return [State(row, ("uniform", "solving")[n % 2], "", names[n]) for n, row in enumerate(tokens)]


def labelled(model: Model, count: int, seed: int = 0) -> tuple[Labels, dict[str, Any]]:
    states = RandomStates()
    found = label(model, states.draw(model, seed, 0, count), Probe(floor=0.0))
    return found, describe(model, states, Probe(floor=0.0), seed, count, Effort())


def low_rank(seed: int = 0, **changes: Any) -> LowRankHead:
    torch.manual_seed(seed)
    head = LowRankHead(LowRankConfig(**{"width": 16, "symbols": 4, "length": 8, "inner": 24, "forms": 6, "rank": 4} | changes))
    for hop in head.hops:
        torch.nn.init.normal_(hop.out)  # a fresh one corrects nothing
        torch.nn.init.normal_(hop.through, std=0.3)
    return head


def pair_mlp(seed: int = 0, width: int = 16) -> PairMLPHead:
    torch.manual_seed(seed)
    head = PairMLPHead(PairMLPConfig(width))
    torch.nn.init.constant_(head.network[5].bias, 0.5)  # above 0, where a fresh one may not be
    return head


def save_head(file: Path, made: LowRankHead | PairMLPHead, model: Model, layers: tuple[int, ...] = (2,), **changes: Any) -> str:
    about = {"kind": "head", "head": made.kind, "config": made.about(), "layers": list(layers), "backbone": identify(model)}
    save_tensors(file, made.state_dict(), about | changes)
    return str(file)


def tables(seed: int = 0, fresh: bool = False, **changes: Any) -> TableHead:
    """Tables for `tiny`, that say something unless fresh."""
    torch.manual_seed(seed)
    sizes = {
        "width": 16,
        "symbols": 4,
        "length": 8,
        "inner": 12,
        "rank": 4,
        "forms": 3,
        "form_rank": 2,
        "places": 3,
        "paths": 2,
        "hidden": 10,
    }
    head = TableHead(TableConfig(**sizes | {"channels": 3} | changes))
    if not fresh:
        torch.nn.init.normal_(head.shift.weight)
        torch.nn.init.normal_(head.message.weight)
        torch.nn.init.normal_(head.weigh.weight)
    return head.requires_grad_(False)
