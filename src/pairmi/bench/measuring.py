"""Settings as units of work: each is measured wherever there is room, and its record is kept as soon as it comes."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pairmi.bench import sudoku
from pairmi.bench.boards import Boards
from pairmi.bench.ledger import Ledger
from pairmi.commit import Sampling
from pairmi.model import Model
from pairmi.spread.placed import placed
from pairmi.spread.units import Engine, Failure, Outcome, Unit, backbone_hash, bisect_failures, settled, task_name

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Measuring:
    """The job of a setting: decode the boards by its rule."""

    model: Model
    boards: Boards

    def on(self, device: str) -> "Measuring":
        """The same with its network on another device."""
        return replace(self, model=replace(self.model, backbone=placed(self.model.backbone, device)))

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
        return sudoku.measure(self.model, self.boards, how["rule"], Sampling(**how["sampling"]), how["batch"])


def recorded(
    job: Measuring, grid: Sequence[Settings], ledger: Ledger, engine: Engine, report: Callable[[Failure], object]
) -> Iterator[dict[str, Any]]:
    """The records of a grid, in its order; what the ledger does not hold is measured, in any order, and written as it comes.

    A setting that cannot be measured is reported and left out; after the last record `Incomplete` is raised.
    """
    units = {unit.name: unit for unit in map(job.unit, grid)}
    arrived: dict[str, dict[str, Any] | None] = {}

    def outcomes() -> Iterator[Outcome]:
        held = {name: record for name, unit in units.items() if (record := ledger.find(unit.items[0])) is not None}
        yield from (Outcome(units[name], record) for name, record in held.items())
        missing = [unit for name, unit in units.items() if name not in held]
        for outcome in engine.run(job, missing, in_order=False) if missing else ():
            if outcome.value is not None:
                record = ledger.add(outcome.unit.items[0], outcome.value | {"engine": str(engine)})  # where its times come from
                yield replace(outcome, value=record)
            else:
                yield outcome

    turn = deque(units)
    for outcome in settled(outcomes(), report):
        arrived[outcome.unit.name] = outcome.value
        while turn and turn[0] in arrived:
            record = arrived.pop(turn.popleft())
            if record is not None:
                yield record
