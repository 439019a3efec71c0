"""A model whose sequences, recoveries and perplexities are kept."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from pairmi.backbones.identity import identify
from pairmi.bench.generation import Made, fill, generate
from pairmi.bench.ledger import Ledger, depends_on
from pairmi.commit import Sampling
from pairmi.model import Model
from pairmi.types import Backbone


def pseudo_perplexity(backbone: Backbone, text: str, batch: int = 64) -> float:
    """exp of the mean over positions of -log p(x_i | all others): L rows (Salazar et al. 2020)."""
    tokens = backbone.vocab.encode(text)
    total = 0.0
    for places in torch.arange(len(tokens)).split(batch):
        rows = tokens.repeat(len(places), 1)
        own = torch.arange(len(places))
        rows[own, places] = backbone.vocab.size
        total -= float(backbone(rows).log_probs[own, places, tokens[places]].double().sum())
    return float(np.exp(total / len(tokens)))


@dataclass(frozen=True)
class Maker:
    """A model whose sequences are kept."""

    model: Model
    ledger: Ledger
    batch: int = 64

    def generate(self, spec: str, lengths: Sequence[int], seed: int) -> Made:
        """Unconditional samples."""
        return generate(self.model, self.ledger, spec, lengths, seed, self.batch)

    def recover(self, spec: str, texts: Sequence[str], seed: int = 0) -> float:
        """Half of each sequence is hidden at random: the fraction of the hidden residues that the likeliest symbols bring back."""
        rng = torch.Generator().manual_seed(seed)
        clean = [self.model.vocab.encode(text) for text in texts]
        hidden = [torch.rand(len(row), generator=rng).argsort() < len(row) // 2 for row in clean]
        canvases = [row.masked_fill(mask, self.model.vocab.size) for row, mask in zip(clean, hidden, strict=True)]

        def right() -> dict[str, float]:
            made = fill(self.model, canvases, spec, Sampling(seed, greedy=True), self.batch)
            found = [(self.model.vocab.encode(t) == c)[m] for t, c, m in zip(made.texts, clean, hidden, strict=True)]
            return {"recovery": float(torch.cat(found).double().mean())}

        key = {"what": "recover"} | depends_on(self.model, spec) | {"texts": list(texts), "seed": seed}
        return float(self.ledger.measured(key, right)["recovery"])

    def perplexity(self, texts: Sequence[str]) -> float:
        """The mean pseudo-perplexity."""

        def scored() -> dict[str, float]:
            return {"perplexity": sum(pseudo_perplexity(self.model, text, self.batch) for text in texts) / len(texts)}

        return float(
            self.ledger.measured({"what": "perplexity", "weights": identify(self.model), "texts": list(texts)}, scored)["perplexity"]
        )
