"""Rules on the same boards: a grid of settings measured, each set beside one-by-one decoding and beside the others."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from pairmi.bench import report
from pairmi.bench.ledger import Ledger
from pairmi.bench.stats import paired_difference
from pairmi.commit import Sampling
from pairmi.model import Model
from pairmi.spread.local import Local
from pairmi.spread.units import Engine, Failure, Outcome, Unit, backbone_hash, bisect_failures, settled, task_name
from pairmi.types import PairmiError
from studies import board_measures
from studies.boards import Boards

Record = Mapping[str, Any]
Settings = Mapping[str, Any]
TIMES = {"ms": "seconds_per_board"} | {f"{part}_ms": f"{part}_seconds" for part in ("pass", "mi", "rule", "loop")}
COLUMNS = ("rule", "verified", "boards", "quality", "against", "passes", "rows", "probe_rows", "accepted", *TIMES)
REFERENCE = "sequential"


@dataclass(frozen=True)
class Measuring:
    """The job of a setting: decode the boards by its rule."""

    model: Model
    boards: Boards

    def unit(self, settings: Settings) -> Unit:
        """The unit of a setting; its name says the rule, and all settings by their hash."""
        how = settings["sampling"]
        task = task_name(f"{settings['rule']}{' verified' if how['verify'] else ''}", settings)
        return Unit(task, how["seed"], 0, len(self.boards.canvases), backbone_hash(self.model), (settings,))

    def __call__(self, unit: Unit) -> Outcome:
        """The measurement; absent if something raises."""
        made, failures = bisect_failures(self._measured, unit.items, lambda _: unit.name)
        return Outcome(unit, made[0] if made else None, tuple(failures))

    def _measured(self, settings: Sequence[Settings]) -> dict[str, Any]:
        (how,) = settings
        return board_measures.measure(self.model, self.boards, how["rule"], Sampling(**how["sampling"]), how["batch"])


def recorded(
    job: Measuring, grid: Sequence[Settings], ledger: Ledger, engine: Engine, report: Callable[[Failure], object]
) -> Iterator[dict[str, Any]]:
    """The records of a grid, in its order; what the ledger does not hold is measured, in any order, and written as it comes.

    A setting that cannot be measured is reported and left out; after the last record `Incomplete` is raised.
    """
    units = {unit.name: unit for unit in map(job.unit, grid)}
    held = {name: record for name, unit in units.items() if (record := ledger.find(unit.items[0])) is not None}
    missing = [unit for name, unit in units.items() if name not in held]

    def outcomes() -> Iterator[Outcome]:
        yield from (Outcome(units[name], record) for name, record in held.items())
        for outcome in engine.run(job, missing, in_order=False) if missing else ():
            if outcome.value is not None:  # with where its times come from
                outcome = replace(outcome, value=ledger.add(outcome.unit.items[0], outcome.value | {"engine": str(engine)}))
            yield outcome

    arrived: dict[str, dict[str, Any] | None] = {}
    turn = deque(units)
    for outcome in settled(outcomes(), report):
        arrived[outcome.unit.name] = outcome.value
        while turn and turn[0] in arrived:
            record = arrived.pop(turn.popleft())
            if record is not None:
                yield record


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
    grid = [board_measures.settings_of(model, boards, spec, how, batch) for spec, how in ways]
    return recorded(Measuring(model, boards), grid, ledger, engine or Local(), report)


def each(record: Record, what: str) -> Float[ndarray, " N"]:
    """A figure of every board: good, passes or rows."""
    return np.array([float(value) for value in record["each"][what]])


def rows_for_people(records: Sequence[Record], reference: Record) -> list[dict[str, Any]]:
    """What a table shows; `against` is the paired difference of quality to the reference, in points, with its 95 % interval."""
    rows = []
    for record in records:
        gap = paired_difference(100 * each(record, "good"), 100 * each(reference, "good"))
        row = {"rule": record["settings"]["rule"], "verified": "yes" if record["settings"]["sampling"]["verify"] else ""}
        row |= {name: record[name] for name in ("boards", "quality", "passes", "rows", "probe_rows", "accepted")}
        row |= {name: round(1e3 * record[source], 3) for name, source in TIMES.items()}
        rows.append(row | {"against": f"{gap.value:+.1f} [{gap.low:+.1f}, {gap.high:+.1f}]"})
    return rows


def is_reference(record: Record) -> bool:
    """Whether this is one-by-one decoding, most confident first, which all others are held against."""
    return bool(record["settings"]["rule"] == REFERENCE and not record["settings"]["sampling"]["verify"])


def reference_among(records: Sequence[Record]) -> Record:
    """The record that is the reference."""
    found = next(filter(is_reference, records), None)
    if found is None:
        raise PairmiError(f"frontiers: '{REFERENCE}' is not among the rules; it is what the others are compared with")
    return found


def way(spec: str) -> tuple[str, ...]:
    """The rule of a specification, and how it charges and draws."""
    return report.family(spec), *(part for part in spec.partition(":")[2].split(",") if part.startswith(("charge=", "draw=")))


def loss_free(records: Sequence[Record], reference: Record, slack: float = 1.0) -> list[Record]:
    """Of each rule and way of it the setting with the fewest passes whose quality is at most `slack` points below the reference's."""
    best: dict[tuple[tuple[str, ...], bool], Record] = {}
    for record in records:
        key = (way(record["settings"]["rule"]), bool(record["settings"]["sampling"]["verify"]))
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
