"""What choosing costs: the time of each rule's selection over the time of one backbone pass, measured alternately."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch

from pairmi.backbones.transformer import Transformer, TransformerConfig
from pairmi.draw import Streams
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import looks_at_pairs
from pairmi.types import Backbone, PairMatrix, Prediction, RowStreams, Turn

SHAPE = TransformerConfig(width=260, depth=5, heads=4)  # 4.1 M parameters: the size of the paper's Sudoku model


@dataclass(frozen=True)
class Given:
    """A matrix that is already there, so that the rule alone is timed."""

    matrix: PairMatrix

    def __call__(self, prediction: Prediction, backbone: Backbone, rng: RowStreams) -> PairMatrix:
        """The given matrix."""
        return self.matrix


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def selection_times(batch: int = 256, rounds: int = 5) -> Iterator[dict[str, Any]]:
    """For every rule, at its defaults, on fully masked boards (the worst case): milliseconds, and the share of a pass."""
    rng = torch.Generator().manual_seed(0)
    model = Transformer(SHAPE).eval()
    tokens = torch.full((batch, SHAPE.length), len(SHAPE.symbols))
    logits = torch.randn(batch, SHAPE.length, len(SHAPE.symbols), generator=rng) * torch.rand(batch, SHAPE.length, 1, generator=rng) * 8
    prediction = Prediction(tokens, logits.log_softmax(-1), torch.zeros(batch, SHAPE.length, 1))
    shared = torch.rand(batch, SHAPE.length, SHAPE.length, generator=rng) ** 8
    given = Given(((shared + shared.transpose(1, 2)) / 2) * (1 - torch.eye(SHAPE.length)))
    turn = Turn(prediction, model, Streams(0, torch.arange(batch)), {})
    parameters_count = sum(parameter.numel() for parameter in model.parameters())
    with torch.inference_mode():
        model(tokens)
        for name, rule in CATALOGUE.items():
            selector = rule(given) if looks_at_pairs(name) else rule()
            selector(turn)
            passes, choices = zip(*((seconds(lambda: model(tokens)), seconds(lambda: selector(turn))) for _ in range(rounds)), strict=True)  # noqa: B023
            share = median(choice / one for choice, one in zip(choices, passes, strict=True))
            yield {
                "rule": name,
                "selection_ms": 1e3 * median(choices),
                "pass_ms": 1e3 * median(passes),
                "share": share,
                "batch": batch,
                "parameters": parameters_count,
            }
