"""Sequences of many lengths made by a rule, with what they cost."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from pairmi.bench.ledger import Ledger, depends_on
from pairmi.decoding import Sampling, decode
from pairmi.spec import Model, rule
from pairmi.tasks.protein.lengths import same_length


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
    texts, totals, start = dict[int, str](), torch.zeros(3), time.perf_counter()
    selector = rule(spec, model)
    for places in same_length([len(canvas) for canvas in canvases], batch):
        tokens = torch.stack([canvases[place] for place in places])
        out = decode(model, tokens, selector, sampling, torch.tensor(places), batch)
        texts |= {place: model.vocab.decode(row) for place, row in zip(places, out.tokens, strict=True)}
        totals += torch.tensor([float(out.passes.sum()), float(out.rows.sum()), float(out.probe_rows)])
    passes, rows, probes = (totals / len(canvases)).tolist()
    seconds = (time.perf_counter() - start) / len(canvases)
    return Made([texts[place] for place in range(len(canvases))], passes, rows, probes, seconds)


def generate(model: Model, ledger: Ledger, spec: str, lengths: Sequence[int], seed: int, batch: int = 64) -> Made:
    """Unconditional samples; what the ledger holds is not made again."""
    empty = [torch.full((length,), model.vocab.size) for length in lengths]
    key = {"what": "generate"} | depends_on(model, spec) | {"lengths": list(lengths), "seed": seed}
    found = ledger.measured(key, lambda: vars(fill(model, empty, spec, Sampling(seed), batch)))
    return Made(**{field.name: found[field.name] for field in fields(Made)})
