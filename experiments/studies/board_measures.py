"""Sudoku decoded by a rule: quality, passes, rows and time."""

from dataclasses import asdict
from typing import Any

import torch

from pairmi.bench.ledger import depends_on
from pairmi.bench.stats import wilson
from pairmi.commit import Sampling
from pairmi.decoding import iter_decode
from pairmi.model import Model
from pairmi.spec import rule
from studies.boards import Boards
from studies.stopwatch import Stopwatch, timed_passes, watched


def measure(model: Model, boards: Boards, spec: str, sampling: Sampling, batch: int = 128) -> dict[str, Any]:
    """Decode boards by one rule: what came of each and what it cost, the time by what it was spent on.

    `accepted` is the share of the chosen positions that were committed: 1 unless drafts are verified. `rows` are the sequences that
    decoding and verification evaluated, `probe_rows` those that the rule itself spent on MI; the one never holds the other.
    """
    watch = Stopwatch()
    selector, backbone = watched(rule(spec, model), watch), timed_passes(model, watch)
    filled, passes = boards.canvases.clone(), torch.zeros(len(boards.canvases), dtype=torch.long)
    evaluated, probes, drafted, committed = torch.zeros_like(passes), torch.zeros_like(passes), 0, 0
    for some in torch.arange(len(filled)).split(batch):
        with watch.during("loop"):
            for step in iter_decode(backbone, boards.canvases[some], selector, sampling, some):
                where = some[step.rows]
                filled[where], passes[where], evaluated[where] = step.tokens.cpu(), step.passes, step.evaluated
                probes[where] = step.probe_rows
                drafted, committed = drafted + int(step.drafted.sum()), committed + int(step.committed.sum())
    good = boards.good(filled)
    low, high = wilson(int(good.sum()), len(good))
    record = {"boards": len(good), "quality": float(good.double().mean()), "low": low, "high": high}
    costs = {"passes": passes, "rows": evaluated, "probe_rows": probes}
    record |= {name: float(value.double().mean()) for name, value in costs.items()}
    record |= {"accepted": committed / drafted, "seconds_per_board": sum(watch.seconds.values()) / len(good)}
    record |= {f"{name}_seconds": watch.seconds.get(name, 0.0) / len(good) for name in ("pass", "mi", "rule", "loop")}
    if boards.solutions is None:
        record |= {"distinct": len(filled[good].unique(dim=0)), "valid": int(good.sum())}
    each = {"good": "".join(map(str, good.long().tolist())), "passes": passes.tolist(), "rows": evaluated.tolist()}
    return record | {"each": each}


def settings_of(model: Model, boards: Boards, spec: str, sampling: Sampling, batch: int = 128) -> dict[str, Any]:
    """Everything that a measurement depends on."""
    about = {"task": "sudoku", "kind": boards.kind, "split": boards.split, "count": len(boards.canvases), "batch": batch}
    return about | depends_on(model, spec) | {"sampling": asdict(sampling)}
