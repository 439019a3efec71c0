"""What certified pruning saves and whether its certificates hold; what labelling costs beside plain passes."""

from collections.abc import Mapping
from dataclasses import replace
from statistics import median
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from pairmi.bench.head import groups
from pairmi.bench.speed import seconds
from pairmi.counting import Counting
from pairmi.mi.probe import Probe
from pairmi.model import Model
from pairmi.store import Labels
from pairmi.types import Tokens

ROWS = ("group", "states", "rows", "full", "fewer", "paper", "fewer_than_paper", "certificate", "asymmetry", "inconsistency")


def rows_records(labels: Labels, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows per state, the certificates, and how consistent the beliefs are.

    `full` is what a probe of all symbols of the open positions needs, `paper` the paper's 1 + N|V|, with the sequence's length for N.
    """
    full, paper = (1 + count * len(settings["symbols"]) for count in (labels.masked, labels.lengths))
    means = {"rows": labels.rows, "full": full, "paper": paper, "asymmetry": labels.asymmetry, "inconsistency": labels.inconsistency}
    records: list[dict[str, Any]] = []
    for group, some in groups(labels).items():
        if bool(some.any()):
            record = {name: float(values[some].double().mean()) for name, values in means.items()}
            for name, rows in (("fewer", full), ("fewer_than_paper", paper)):
                record[name] = float(rows[some].sum() / labels.rows[some].sum())
            records.append({"group": group, "states": int(some.sum()), "certificate": float(labels.bound[some].max())} | record)
    return records


def sample(labels: Labels, count: int) -> Tokens:
    """States of one length, the most frequent one, from all over the store."""
    tokens = max((some for _, some in labels.by_length()), key=len).tokens
    return tokens[torch.arange(0, len(tokens), max(1, len(tokens) // count))][:count]


def confirmed(model: Model, tokens: Tokens, probe: Probe) -> dict[str, Any]:
    """The full probe beside the pruned one: by how much they differ, what was certified, and how many entries broke it."""
    prediction = model(tokens)
    pruned, full = (replace(probe, floor=floor).measure(prediction, model) for floor in (probe.floor, 0.0))
    difference = (pruned.matrix - full.matrix).abs()
    return {
        "states": len(tokens),
        "largest_difference": float(difference.max()),
        "largest_certificate": float(pruned.bound.max()),
        "broken": int((difference > pruned.bound + 1e-6).sum()),
        "rows": int(pruned.rows.sum()) + len(tokens),
        "full_rows": int(full.rows.sum()) + len(tokens),
    }


def throughput(model: Model, tokens: Tokens, probe: Probe, rounds: int = 5) -> dict[str, Any]:
    """Rows a second of probing and of plain passes at the same batch, alternately; the share is the median of the ratios."""
    batch: Int[Tensor, "B L"] = tokens[torch.arange(probe.batch_rows) % len(tokens)]
    rates = []
    for _ in range(rounds):
        meter = Counting(model, probe.batch_rows)
        took = seconds(lambda: probe.measure(meter(tokens), meter))  # noqa: B023
        passes = max(1, meter.rows // probe.batch_rows)
        plain = seconds(lambda: [model(batch) for _ in range(passes)])  # noqa: B023
        rates.append((meter.rows / took, passes * probe.batch_rows / plain))
    return {
        "labelling_rows_per_second": median(own for own, _ in rates),
        "plain_rows_per_second": median(plain for _, plain in rates),
        "share": median(own / plain for own, plain in rates),
        "states_per_second": median(own for own, _ in rates) * len(tokens) / meter.rows,
        "batch": probe.batch_rows,
    }
