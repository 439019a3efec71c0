"""What a backbone says of complete sequences: an embedding of each, and its perplexity."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float

from pairmi.tasks.protein.lengths import same_length
from pairmi.types import Backbone


def embed(backbone: Backbone, texts: Sequence[str], batch: int = 64) -> Float[np.ndarray, "N D"]:
    """The mean over positions of the hidden states of each sequence, nothing masked."""
    rows: dict[int, np.ndarray] = {}
    for places in same_length([len(text) for text in texts], batch):
        tokens = torch.stack([backbone.vocab.encode(texts[place]) for place in places])
        means = backbone(tokens).hidden.double().mean(1).cpu().numpy()
        rows |= dict(zip(places, means, strict=True))
    return np.stack([rows[place] for place in range(len(texts))])


def masked_perplexity(backbone: Backbone, texts: Sequence[str], level: float, seed: int = 0, batch: int = 64) -> float:
    """exp of the mean of -log p over the masked positions, a share `level` of each sequence (at least one), at random."""
    rng = torch.Generator().manual_seed(seed)
    total, count = 0.0, 0
    for places in same_length([len(text) for text in texts], batch):
        clean = torch.stack([backbone.vocab.encode(texts[place]) for place in places])
        rank = torch.rand(clean.shape, generator=rng).argsort(1).argsort(1)
        masked = rank < max(1, round(level * clean.shape[1]))
        log_probs = backbone(clean.masked_fill(masked, backbone.vocab.size)).log_probs.gather(2, clean[:, :, None])[:, :, 0]
        total, count = total - float(log_probs[masked].double().sum()), count + int(masked.sum())
    return float(np.exp(total / count))
