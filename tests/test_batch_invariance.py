"""On a real network: what a canvas becomes does not depend on its batch."""

import pytest
import torch

from pairmi.backbones.transformer import TransformerConfig
from pairmi.commit import Sampling
from pairmi.decoding import iter_decode
from pairmi.spec import rule
from rules import opinionated
from worlds import decode, generator

MODEL = opinionated(TransformerConfig(width=16, depth=2, heads=2, length=81))
RNG = generator(0)
CANVASES = torch.where(
    torch.rand(1000, 81, generator=RNG) < 0.02 + 0.2 * torch.rand(1000, 1, generator=RNG),
    9,
    torch.randint(9, (1000, 81), generator=RNG),
)


@pytest.mark.parametrize(
    ("spec", "sampling"),
    [
        ("eb:budget=15", Sampling(1)),
        ("threshold:threshold=0.2", Sampling(greedy=True)),
        ("eb:budget=8", Sampling(2, verify=True)),
        ("eb:budget=8", Sampling(greedy=True, verify=True, accept=0.3)),
    ],
)
def test_a_thousand_canvases_are_the_same_at_every_batch_size(spec: str, sampling: Sampling) -> None:
    selector = rule(spec, MODEL)
    whole = decode(MODEL, CANVASES, selector, sampling, batch_size=256)
    assert len(whole.passes.unique()) > 2  # rows leave the batch at different times
    sizes = {1: 40, 7: 140, 64: 640} if sampling.verify else {1: 1000, 7: 1000, 64: 1000}
    for size, count in sizes.items():
        part = decode(MODEL, CANVASES[:count], selector, sampling, batch_size=size)
        assert torch.equal(part.tokens, whole.tokens[:count])
        assert torch.equal(part.passes, whole.passes[:count])
        assert torch.equal(part.rows, whole.rows[:count])


def test_a_thousand_canvases_are_the_same_in_any_order() -> None:
    selector, order = rule("eb:budget=12", MODEL), torch.randperm(1000, generator=generator(1))
    whole = decode(MODEL, CANVASES, selector, Sampling(1))
    mixed = decode(MODEL, CANVASES[order], selector, Sampling(1), index=order, batch_size=100)
    assert torch.equal(mixed.tokens, whole.tokens[order])


def test_also_with_gradients_switched_on() -> None:
    raw = MODEL.backbone  # not behind Model, which switches them off
    selector = rule("eb:budget=12", MODEL)
    whole, part = (decode(raw, CANVASES[:60], selector, Sampling(1), batch_size=size) for size in (60, 7))
    assert torch.equal(whole.tokens, part.tokens)
    assert torch.equal(whole.tokens, decode(MODEL, CANVASES[:60], selector, Sampling(1)).tokens)
    steps = iter_decode(raw, CANVASES[:3], selector, Sampling(1), keep_predictions=True)
    assert not any(step.prediction.log_probs.requires_grad for step in steps)
