"""Sequences of many lengths made by a rule, with what they cost."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

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


PIECE = 50  # sequences that are kept at a time: an interrupted set goes on where it stopped


def fill(model: Model, canvases: Sequence[Tensor], spec: str, sampling: Sampling, batch: int, first: int = 0) -> Made:
    """Decode canvases of different lengths, those of one length together; `first` is the number of the first one."""
    start = time.perf_counter()
    index = list(range(first, first + len(canvases)))
    out = decode(model, canvases, rule(spec, model), sampling, index, batch)
    passes, rows, probes = (sum(getattr(one, name) for one in out) / len(out) for name in ("passes", "rows", "probe_rows"))
    return Made([one.text for one in out], passes, rows, probes, (time.perf_counter() - start) / len(out))


def generate(model: Model, ledger: Ledger, spec: str, lengths: Sequence[int], seed: int, batch: int = 64) -> Made:
    """Unconditional samples; what the ledger holds is not made again."""
    key = {"what": "generate"} | depends_on(model, spec) | {"seed": seed}
    parts = []
    for first in range(0, len(lengths), PIECE):
        some = list(lengths[first : first + PIECE])
        empty = [torch.full((length,), model.vocab.size) for length in some]
        made = partial(fill, model, empty, spec, Sampling(seed), batch, first)
        parts.append(ledger.measured(key | {"first": first, "lengths": some}, lambda: vars(made())))  # noqa: B023
    shares, names = [len(part["texts"]) / len(lengths) for part in parts], ("passes", "rows", "probe_rows", "seconds")
    costs = {name: sum(share * part[name] for share, part in zip(shares, parts, strict=True)) for name in names}
    return Made([text for part in parts for text in part["texts"]], **costs)
