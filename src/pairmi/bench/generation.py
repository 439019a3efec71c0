"""Sequences of many lengths made by a rule, with what they cost."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from pairmi.bench.ledger import Ledger, depends_on
from pairmi.commit import Sampling
from pairmi.decoding import decode
from pairmi.model import Model
from pairmi.spec import rule


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


def generate(model: Model, ledger: Ledger, spec: str, lengths: Sequence[int], seed: int, batch: int = 64) -> Made:
    """Unconditional samples; what the ledger holds is not made again."""
    empty = [torch.full((length,), model.vocab.size) for length in lengths]
    key = {"what": "generate"} | depends_on(model, spec) | {"lengths": list(lengths), "seed": seed}
    found = ledger.measured(key, lambda: vars(fill(model, empty, spec, Sampling(seed), batch)))
    return Made(**{field.name: found[field.name] for field in fields(Made)})
