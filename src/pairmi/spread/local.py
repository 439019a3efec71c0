"""Units one after the other in this process."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pairmi.spread.units import Job, Outcome, Unit, Worker


@dataclass(frozen=True)
class Local:
    """The engine that needs nothing."""

    def run(self, job: Job, units: Iterable[Unit], in_order: bool = True) -> Iterator[Outcome]:
        """One unit at a time, each when its outcome is asked for: they come in order."""
        return map(Worker(job).work, units)
