"""Dependence by masking: what the symbol at one position of a complete sequence tells of another that is masked."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pairmi.counting import Counting
from pairmi.info import kl
from pairmi.mi.contexts import dealt


def masking_information(
    meter: Counting,
    sequence: Int[Tensor, " L"],
    blocks: int = 4,
    seed: int = 0,
    *,
    sources: Bool[Tensor, " L"] | None = None,
    targets: Bool[Tensor, " L"] | None = None,
) -> Float[Tensor, "L L"]:
    """KL(p(X_j | C, x_i) || p(X_j | C)) in nats: [masked i, observed j], of all positions or from `sources` to `targets`.

    C is the sequence without i and without the block of j, of `blocks` that the targets are dealt into; `blocks` >= L masks i and j alone.
    Its mean over symbols x_i that are drawn from p(X_i | C) is the mutual information of i and j given C (form `kl` of the probe); here
    it is told by the symbol that the sequence has, so one row serves i and a whole block. Cost: blocks (L + 1) rows.
    """
    every = torch.ones_like(sequence, dtype=torch.bool)
    sources, targets = every if sources is None else sources, every if targets is None else targets
    information = torch.zeros(len(sequence), len(sequence), dtype=torch.float64, device=sequence.device)
    of, block = torch.nonzero(sources)[:, 0], torch.full_like(sequence, -1)
    block[targets] = dealt(int(targets.sum()), blocks, seed).to(sequence.device)
    for inside in (block == number for number in range(int(block.max()) + 1)):
        canvas = sequence.masked_fill(inside, meter.vocab.size)
        rows = canvas.repeat(len(of) + 1, 1)  # each with the other state of its i, seen or masked; the last as it is
        rows[:-1].scatter_(1, of[:, None], torch.where(inside, sequence, meter.vocab.size)[of, None])
        found = meter(rows).log_probs[:, inside]
        changed, base = found[:-1], found[-1:].expand_as(found[:-1])
        shown = inside[of][:, None, None]  # i is masked in the canvas: its own row sees it
        told = kl(torch.where(shown, changed, base), torch.where(shown, base, changed))
        information[of[:, None], torch.nonzero(inside)[:, 0]] = told
    return information.fill_diagonal_(0)
