"""Sudoku decoded by a rule: quality, passes, rows and time; and how well the model's beliefs are calibrated."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from pairmi.backbones.checkpoint import fingerprint
from pairmi.backbones.identity import identify
from pairmi.bench.boards import Boards
from pairmi.bench.stats import wilson
from pairmi.bench.stopwatch import Stopwatch, TimedBackbone, watched
from pairmi.bench.uniformity import worst_fit
from pairmi.commit import Sampling
from pairmi.decoding import iter_decode
from pairmi.info import confidence
from pairmi.model import Model
from pairmi.spec import looks_at_pairs, rule


def measure(model: Model, boards: Boards, spec: str, sampling: Sampling, batch: int = 128) -> dict[str, Any]:
    """Decode boards by one rule: what came of each and what it cost, the time by what it was spent on.

    `accepted` is the share of the chosen positions that were committed: 1 unless drafts are verified.
    """
    watch = Stopwatch()
    selector, backbone = watched(rule(spec, model), watch), TimedBackbone(model, watch)
    filled, passes = boards.canvases.clone(), torch.zeros(len(boards.canvases), dtype=torch.long)
    evaluated, probes, drafted, committed = torch.zeros_like(passes), torch.zeros_like(passes), 0, 0
    for some in torch.arange(len(filled)).split(batch):
        with watch.during("loop"):
            for step in iter_decode(backbone, boards.canvases[some], selector, sampling, some):
                where = some[step.rows]
                filled[where], passes[where], evaluated[where], probes[where] = step.tokens, step.passes, step.evaluated, step.probe_rows
                drafted, committed = drafted + int(step.drafted.sum()), committed + int(step.committed.sum())
    good = boards.good(filled)
    low, high = wilson(int(good.sum()), len(good))
    record = {"boards": len(good), "quality": float(good.double().mean()), "low": low, "high": high}
    record |= {"passes": float(passes.double().mean()), "rows": int((evaluated + probes).sum()) / len(good)}
    record |= {"accepted": committed / drafted, "seconds_per_board": sum(watch.seconds.values()) / len(good)}
    record |= {f"{name}_seconds": watch.seconds.get(name, 0.0) / len(good) for name in ("pass", "mi", "rule", "loop")}
    if boards.solutions is None:
        record |= _variety(filled[good])
    each = {"good": "".join(map(str, good.long().tolist())), "passes": passes.tolist(), "rows": evaluated.tolist()}
    return record | {"each": each}


def _variety(boards: Int[Tensor, "N 81"]) -> dict[str, Any]:
    """How many of the valid boards differ, and, for enough of them, the worst of the digit statistics with its p-value."""
    record: dict[str, Any] = {"distinct": len(boards.unique(dim=0)), "valid": len(boards)}
    if len(boards) >= 400:  # five expected in every class
        record["worst"], record["p"] = worst_fit(boards)
    return record


def settings_of(model: Model, boards: Boards, spec: str, sampling: Sampling, batch: int = 128) -> dict[str, Any]:
    """Everything that a measurement depends on."""
    pairs = looks_at_pairs(spec)  # rules that do not, do not depend on the head
    head = fingerprint(model.head.state_dict()) if pairs and isinstance(model.head, nn.Module) else None
    about = {"task": "sudoku", "kind": boards.kind, "split": boards.split, "count": len(boards.canvases), "rule": spec, "batch": batch}
    return about | {"sampling": asdict(sampling), "weights": identify(model), "head": head}


def calibration(model: Model, canvases: Int[Tensor, "N 81"], solutions: Int[Tensor, "N 81"], bins: int = 15) -> dict[str, Any]:
    """Confidence against accuracy over the empty cells, in equally wide bins, and the expected calibration error."""
    sure, right = [], []
    for canvas, solution in zip(canvases.split(128), solutions.split(128), strict=True):
        log_probs, empty = model(canvas).log_probs, canvas == model.vocab.size
        sure.append(confidence(log_probs)[empty])
        right.append((log_probs.argmax(2) == solution)[empty])
    belief, truth = torch.cat(sure), torch.cat(right).double()
    place = (belief * bins).long().clamp_max(bins - 1)
    count, believed, happened = (_binned(place, value, bins) for value in (torch.ones_like(belief), belief, truth))
    filled = count > 0
    gap = (believed - happened)[filled].abs().sum() / count.sum()
    mean = [(x[filled] / count[filled]).tolist() for x in (believed, happened)]
    return {"ece": float(gap), "cells": len(belief), "confidence": mean[0], "accuracy": mean[1], "count": count[filled].tolist()}


def _binned(place: Int[Tensor, " N"], value: Float[Tensor, " N"], bins: int) -> Float[Tensor, " K"]:
    return torch.zeros(bins, dtype=torch.float64).index_add(0, place, value.double())


def histogram(givens: Int[Tensor, " N"]) -> str:
    """How many puzzles have how many givens."""
    values: Sequence[tuple[int, int]] = [(int(v), int(n)) for v, n in zip(*givens.unique(return_counts=True), strict=True)]
    return ", ".join(f"{value}: {count}" for value, count in values)
