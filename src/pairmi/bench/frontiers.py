"""Rules on the same boards: a grid of settings measured, each set beside one-by-one decoding and beside the others."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from pairmi.bench import report, sudoku
from pairmi.bench.boards import Boards
from pairmi.bench.ledger import Ledger
from pairmi.bench.measuring import Measuring, recorded
from pairmi.bench.stats import paired_difference
from pairmi.commit import Sampling
from pairmi.model import Model
from pairmi.spread.local import Local
from pairmi.spread.units import Engine, Failure
from pairmi.types import PairmiError

Record = Mapping[str, Any]
COLUMNS = (
    "rule",
    "verified",
    "boards",
    "quality",
    "against",
    "passes",
    "rows",
    "probe_rows",
    "accepted",
    "ms",
    "pass_ms",
    "mi_ms",
    "rule_ms",
    "loop_ms",
)
REFERENCE = "sequential"


def sweep(
    model: Model,
    boards: Boards,
    specs: Sequence[str],
    sampling: Sampling,
    ledger: Ledger,
    batch: int = 128,
    verify: Sequence[bool] = (False,),
    engine: Engine | None = None,
    report: Callable[[Failure], object] = print,
) -> Iterator[dict[str, Any]]:
    """Measure every rule, plain or verified, here or by another engine; what the ledger holds is not measured again."""
    ways = [(spec, replace(sampling, verify=way)) for spec in specs for way in verify]
    grid = [sudoku.settings_of(model, boards, spec, how, batch) for spec, how in ways]
    return recorded(Measuring(model, boards), grid, ledger, engine or Local(), report)


def each(record: Record, what: str) -> Float[ndarray, " N"]:
    """A figure of every board: good, passes or rows."""
    values = record["each"][what]
    return np.array([float(value) for value in values])


def rows_for_people(records: Sequence[Record], reference: Record) -> list[dict[str, Any]]:
    """What a table shows; `against` is the paired difference of quality to the reference, in points, with its 95 % interval."""
    rows = []
    for record in records:
        gap = paired_difference(100 * each(record, "good"), 100 * each(reference, "good"))
        times = {"ms": "seconds_per_board"} | {f"{part}_ms": f"{part}_seconds" for part in ("pass", "mi", "rule", "loop")}
        row = {"rule": record["settings"]["rule"], "verified": "yes" if record["settings"]["sampling"]["verify"] else ""}
        row |= {name: record[name] for name in ("boards", "quality", "passes", "rows", "probe_rows", "accepted")}
        row |= {name: round(1e3 * record[source], 3) for name, source in times.items()}
        rows.append(row | {"against": f"{gap.value:+.1f} [{gap.low:+.1f}, {gap.high:+.1f}]"})
    return rows


def is_reference(record: Record) -> bool:
    """Whether this is one-by-one decoding, most confident first, which all others are held against."""
    return bool(record["settings"]["rule"] == REFERENCE and not record["settings"]["sampling"]["verify"])


def reference_among(records: Sequence[Record]) -> Record:
    """The record that is the reference."""
    for record in filter(is_reference, records):
        return record
    raise PairmiError(f"frontiers: '{REFERENCE}' is not among the rules; it is what the others are compared with")


def loss_free(records: Sequence[Record], reference: Record, slack: float = 1.0) -> list[Record]:
    """Of each rule the setting with the fewest passes whose quality is at most `slack` points below the reference's."""
    best: dict[tuple[str, bool], Record] = {}
    for record in records:
        key = (report.family(record["settings"]["rule"]), bool(record["settings"]["sampling"]["verify"]))
        enough = 100 * record["quality"] >= 100 * reference["quality"] - slack
        if enough and (key not in best or record["passes"] < best[key]["passes"]):
            best[key] = record
    return list(best.values())


def panels(records: Sequence[Record]) -> dict[str, list[dict[str, Any]]]:
    """What a frontier plot shows: plain and verified decoding apart."""
    found: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        way = "verified" if record["settings"]["sampling"]["verify"] else "plain"
        point = {"rule": record["settings"]["rule"]} | {name: record[name] for name in ("quality", "passes", "rows")}
        found.setdefault(way, []).append(point)
    return found
