"""Units on Ray: actors that hold the job, a bounded number of units under way, outcomes in order or as they come."""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from pairmi.optional import needed
from pairmi.spread.units import Failure, Job, Outcome, Unit, Worker
from pairmi.types import PairmiError

WINDOW = 4  # units under way for each worker, those included that are finished and wait for their turn
RETRIES = 3  # how often a unit is begun again after its worker died


class RayWorker:
    """A worker in a process of its own, which computes with one thread; it fetches the job with its first unit."""

    def __init__(self, device: str | None) -> None:
        torch.set_num_threads(1)
        self.device = device
        self.worker: Worker | None = None

    def ready(self) -> None:
        """Returns when the process has started."""

    def work(self, unit: Unit, stored: Sequence[Any]) -> Outcome:
        """Do one unit; `stored` holds the address of the job, which a process that was started again needs again."""
        if self.worker is None:
            import ray

            self.worker = Worker(ray.get(stored[0]), self.device)
        return self.worker.work(unit)


@dataclass(frozen=True)
class Ray:
    """Actors on a Ray cluster: that of the environment variable RAY_ADDRESS, or else one that lives on this machine for the run.

    The job is put into the object store once. Ray starts an actor again whose process died, and gives it its units again.
    """

    workers: int
    gpus_per_worker: float = 0.0

    def __post_init__(self) -> None:
        if self.workers < 1 or self.gpus_per_worker < 0:
            raise PairmiError(f"{self}: expected at least one worker and no less than 0 GPUs for each")

    def run(self, job: Job, units: Iterable[Unit], in_order: bool = True) -> Iterator[Outcome]:
        """Outcomes in the order of the units, or, so that a long one holds up no other, as they come.

        No more than `WINDOW` of them for each worker are in memory.
        """
        with _cluster(self.workers) as ray:
            resources = {"num_cpus": 1, "num_gpus": self.gpus_per_worker, "max_restarts": -1, "max_task_retries": RETRIES}
            start = ray.remote(**resources)(RayWorker)
            actors = [start.remote("cuda" if self.gpus_per_worker else None) for _ in range(self.workers)]
            try:
                yield from _outcomes(ray, actors, [ray.put(job)], units, in_order)
            finally:
                for actor in actors:
                    ray.kill(actor)


@contextmanager
def _cluster(workers: int) -> Iterator[Any]:
    """Ray, connected; a cluster that was not there before is gone afterwards."""
    ray = needed("ray", "engine", "'pairmi[ray]'")
    if ray.is_initialized():
        yield ray
        return
    own = {} if "RAY_ADDRESS" in os.environ else {"address": "local", "num_cpus": workers, "include_dashboard": False}
    ray.init(**own, log_to_driver=False, logging_level="ERROR")
    try:
        yield ray
    finally:
        ray.shutdown()


def _outcomes(ray: Any, actors: Sequence[Any], stored: Sequence[Any], units: Iterable[Unit], in_order: bool) -> Iterator[Outcome]:
    """Give a unit to each actor that has none, as long as there is room, and hand the outcomes on.

    An actor has one unit at a time: a unit that kills its worker costs no other one an attempt. What ends the units is raised when all
    before it are done.
    """
    source, more, wrong = iter(units), True, None
    waiting: dict[Any, Unit] = {}  # by the tasks that do them, in order
    running = {actor.ready.remote(): actor for actor in actors}  # task -> its actor; at first, to start
    idle: deque[Any] = deque()
    while more or waiting:
        if more and idle and len(waiting) < WINDOW * len(actors):
            try:
                unit = next(source, None)
            except PairmiError as error:
                unit, wrong = None, error
            more = unit is not None
            if unit is not None:
                actor = idle.popleft()
                task = actor.work.remote(unit, stored)
                waiting[task], running[task] = unit, actor
        elif (done := next((task for task in islice(waiting, 1 if in_order else None) if task not in running), None)) is not None:
            yield _outcome(ray, waiting.pop(done), done)
        else:
            idle.extend(running.pop(task) for task in ray.wait(list(running), fetch_local=False)[0])
    if wrong is not None:
        raise wrong


def _outcome(ray: Any, unit: Unit, task: Any) -> Outcome:
    """What an actor made of a unit; one whose workers died again and again has failed."""
    try:
        outcome: Outcome = ray.get(task)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, PairmiError):
            raise PairmiError(str(error.cause)) from None
        raise
    except ray.exceptions.RayActorError as error:
        return Outcome(unit, None, (Failure(unit.name, f"its worker died, in {RETRIES + 1} attempts ({type(error).__name__})"),))
    return outcome
