"""Dependence by substitution: how far the odds at a masked position move when another symbol is put at a known one."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pairmi.counting import Counting
from pairmi.mi.contexts import dealt

LEAST = 1e-4  # probabilities are taken to be no closer to 0 and 1: symbols that have no chance before and after do not count


def log_odds_changes(
    meter: Counting, sequence: Int[Tensor, " L"], symbols: Int[Tensor, "L S"], blocks: int, batch_rows: int = 256, seed: int = 0
) -> Float[Tensor, "L L"]:
    """max over symbols a, b of |log odds(X_j = b | X_i = a) - log odds(X_j = b | X_i = x_i)|: [replaced i, observed j].

    The nucleotide dependency of Tomaz da Silva et al. (2025), with the observed positions masked: the positions are dealt into `blocks`
    blocks, and a block is masked at a time, but for i. `blocks` = L masks j alone. The first of `symbols` are those of the sequence.
    Cost: blocks L S rows.
    """
    length, size = symbols.shape
    block = dealt(length, blocks, seed).to(sequence.device)
    changes = torch.zeros(length, length, dtype=torch.float64, device=sequence.device)
    for number in range(min(blocks, length)):
        inside = block == number
        canvas = sequence.masked_fill(inside, meter.vocab.size)
        for some in torch.arange(length, device=sequence.device).split(max(1, batch_rows // size)):
            rows = canvas.repeat(len(some), size, 1)
            rows.scatter_(2, some[:, None, None].expand(-1, size, 1), symbols[some][:, :, None])
            odds = _log_odds(meter(rows.flatten(0, 1)).log_probs[:, inside].unflatten(0, (-1, size)))
            changes[some[:, None], inside.nonzero()[:, 0]] = (odds[:, 1:] - odds[:, :1]).abs().amax((1, 3))
    return changes.fill_diagonal_(0)


def _log_odds(log_probs: Float[Tensor, "N S J V"]) -> Float[Tensor, "N S J V"]:
    return torch.logit(log_probs.double().exp(), eps=LEAST)
