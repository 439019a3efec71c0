"""A trained network with more blocks that computes the same: where depth is what is missing, training goes on from there."""

from dataclasses import replace

import torch

from pairmi.backbones.transformer import Block, Transformer
from pairmi.types import PairmiError


def deepened(model: Transformer, depth: int) -> Transformer:
    """The same function in `depth` blocks: evenly spread, some blocks are followed by a copy of themselves that adds nothing yet."""
    old = model.config.depth
    if depth < old:
        raise PairmiError(f"deepened: a network of {old} blocks cannot be had in {depth}; expected at least {old}")
    grown = Transformer(replace(model.config, depth=depth))
    source = [number * old // depth for number in range(depth)]
    with torch.no_grad():
        for name in ("symbol", "norm", "readout"):
            getattr(grown, name).load_state_dict(getattr(model, name).state_dict())
        grown.position.copy_(model.position)
        for number, (block, came_from) in enumerate(zip(grown.blocks, source, strict=True)):
            assert isinstance(block, Block)
            block.load_state_dict(model.blocks[came_from].state_dict())
            if number and source[number - 1] == came_from:
                block.mix.weight.zero_()
                block.down.weight.zero_()
    return grown
