"""Sequences of many lengths made by a rule, with what they cost."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn

from pairmi.backbones.checkpoint import fingerprint
from pairmi.backbones.identity import identify
from pairmi.bench.ledger import Ledger
from pairmi.commit import Sampling
from pairmi.decoding import decode
from pairmi.model import Model
from pairmi.spec import looks_at_pairs, rule
from pairmi.tasks.protein.scores import pseudo_perplexity


@dataclass(frozen=True)
class Made:
    """What a rule made of canvases; costs are means over them."""

    texts: list[str]
    passes: float
    rows: float  # sequences evaluated, without the probes
    probe_rows: float  # and what the rule itself spent on the backbone
    seconds: float


def fill(model: Model, canvases: Sequence[Tensor], spec: str, sampling: Sampling, batch: int) -> Made:
    """Decode canvases of different lengths, those of one length together."""
    start = time.perf_counter()
    out = decode(model, canvases, rule(spec, model), sampling, batch_size=batch)
    passes, rows, probes = (sum(getattr(one, name) for one in out) / len(out) for name in ("passes", "rows", "probe_rows"))
    return Made([one.text for one in out], passes, rows, probes, (time.perf_counter() - start) / len(out))


@dataclass(frozen=True)
class Maker:
    """A model whose sequences are kept."""

    model: Model
    ledger: Ledger
    batch: int = 64

    def _key(self, what: str, **settings: Any) -> dict[str, Any]:
        """What a measurement depends on: the head only where a rule looks at pairs, so that a new head leaves the rest as it is."""
        head = self.model.head if "rule" in settings and looks_at_pairs(settings["rule"]) else None
        made_for = {"weights": identify(self.model), "head": fingerprint(head.state_dict()) if isinstance(head, nn.Module) else ""}
        return {"what": what, **made_for, **settings}

    def generate(self, spec: str, lengths: Sequence[int], seed: int) -> Made:
        """Unconditional samples."""
        empty = [torch.full((length,), self.model.vocab.size) for length in lengths]
        key = self._key("generate", rule=spec, lengths=list(lengths), seed=seed)
        found = self.ledger.measured(key, lambda: vars(fill(self.model, empty, spec, Sampling(seed), self.batch)))
        return Made(**{field.name: found[field.name] for field in fields(Made)})

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

        return float(self.ledger.measured(self._key("recover", rule=spec, texts=list(texts), seed=seed), right)["recovery"])

    def perplexity(self, texts: Sequence[str]) -> float:
        """The mean pseudo-perplexity."""

        def scored() -> dict[str, float]:
            return {"perplexity": sum(pseudo_perplexity(self.model, text, self.batch) for text in texts) / len(texts)}

        return float(self.ledger.measured(self._key("perplexity", texts=list(texts)), scored)["perplexity"])
