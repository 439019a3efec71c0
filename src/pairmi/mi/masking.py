"""Dependence by masking: what does the symbol at one position of a complete sequence tell of another that is masked?"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pairmi.counting import Counting
from pairmi.info import kl


def masking_information(meter: Counting, sequence: Int[Tensor, " L"], batch_rows: int = 256) -> Float[Tensor, "L L"]:
    """KL(p(X_j | all but j) || p(X_j | all but i and j)) in nats: [masked i, observed j].

    Its mean over symbols at i, drawn from p(X_i | all but i and j), is the mutual information of i and j given all else (form `kl` of
    the probe); here it is told by the symbol that the sequence has, so one row serves a pair. Cost: L (L + 1) / 2 rows.
    """
    length, mask, device = len(sequence), meter.vocab.size, sequence.device
    every = torch.arange(length, device=device)
    alone = torch.cat([_masked(meter, sequence, some[:, None], mask)[:, 0] for some in every.split(batch_rows)])
    information = torch.zeros(length, length, dtype=torch.float64, device=device)
    for pair in torch.combinations(every).split(batch_rows):
        i, j = pair.unbind(1)
        both = _masked(meter, sequence, pair, mask)
        information[j, i], information[i, j] = kl(alone[i], both[:, 0]), kl(alone[j], both[:, 1])
    return information


def _masked(meter: Counting, sequence: Int[Tensor, " L"], places: Int[Tensor, "R K"], mask: int) -> Float[Tensor, "R K V"]:
    """The beliefs at the places that a row masks."""
    found = meter(sequence.repeat(len(places), 1).scatter_(1, places, mask)).log_probs
    return found.gather(1, places[:, :, None].expand(-1, -1, found.shape[2]))
