import pytest
import torch

from pairmi.backbones.transformer import Transformer, TransformerConfig
from pairmi.types import PairmiError
from studies.growth import deepened

SHAPE = TransformerConfig("abcd", "._", length=7, width=16, depth=3, heads=2)


def opinionated() -> Transformer:
    """Every weight counts: none of the zeros that a fresh network begins with."""
    torch.manual_seed(0)
    model = Transformer(SHAPE)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize("depth", [3, 4, 5, 6, 8])
def test_more_blocks_compute_the_same_and_all_of_them_learn(depth: int) -> None:
    model = opinionated()
    grown, tokens = deepened(model, depth), torch.randint(5, (6, 7), generator=torch.Generator().manual_seed(1))
    assert len(grown.blocks) == grown.config.depth == depth
    assert torch.equal(grown(tokens).log_probs, model(tokens).log_probs)
    grown(tokens).log_probs[..., 0].sum().backward()
    assert all(block.mix.weight.grad.abs().sum() > 0 and block.down.weight.grad.abs().sum() > 0 for block in grown.blocks)


def test_fewer_blocks_are_refused() -> None:
    with pytest.raises(PairmiError, match=r"^deepened: a network of 3 blocks cannot be had in 2; expected at least 3$"):
        deepened(opinionated(), 2)
