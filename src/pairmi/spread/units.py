"""Work cut into units that are named by their content, and what is asked of those who do them."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from pairmi.backbones.identity import identify
from pairmi.spread.placed import placed
from pairmi.types import Backbone, PairmiError

# What a model or a task may raise on an input that it cannot take. Whatever else is raised is a defect and ends the run.
REFUSALS = (ArithmeticError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)

backbone_hash = identify  # by which workers tell that they have the same weights

Item = TypeVar("Item")
Result = TypeVar("Result")


class Incomplete(PairmiError):
    """A run that went through, but some of whose work could not be done."""


@dataclass(frozen=True)
class Unit:
    """A piece of work; the same name is the same work, and gives the same bytes wherever it is done."""

    task: str  # what is done, with all settings that it depends on
    seed: int
    start: int
    stop: int
    backbone: str  # `backbone_hash`
    items: tuple[Any, ...] = ()  # what travels with it, where the range alone does not say what is to be done

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def name(self) -> str:
        """Such as `labels-5f0c1a2b/seed3/0-256/97c1a5b0d2e4f681`."""
        return f"{self.task}/seed{self.seed}/{self.start}-{self.stop}/{self.backbone}"


@dataclass(frozen=True)
class Failure:
    """One thing that could not be done, such as a canvas, and why."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


@dataclass(frozen=True)
class Outcome:
    """What became of a unit: its result (None = absent), and which parts of it failed."""

    unit: Unit
    value: Any
    failures: tuple[Failure, ...] = ()


@runtime_checkable
class Job(Protocol):
    """What is done with every unit, a function of the unit alone: a dataclass that travels to each worker once, weights and all."""

    @property
    def model(self) -> Backbone:
        """The backbone that the units were cut for; a worker puts it on its own device."""

    def __call__(self, unit: Unit) -> Outcome:
        """Do one unit; what a single item raises is a failure in the outcome (see `bisect_failures`)."""


@runtime_checkable
class Engine(Protocol):
    """Where units are done."""

    def run(self, job: Job, units: Iterable[Unit], in_order: bool = True) -> Iterator[Outcome]:
        """The outcomes, in the order of the units or as they come; units are taken as needed: memory does not grow with their number."""


class Worker:
    """Whoever does units: it holds the job, and refuses units that were cut for another backbone."""

    def __init__(self, job: Job, device: str | None = None) -> None:
        self.job: Job = job if device is None else replace(cast(Any, job), model=placed(job.model, device))
        self.backbone = backbone_hash(self.job.model)

    def work(self, unit: Unit) -> Outcome:
        """Do one unit."""
        if unit.backbone != self.backbone:
            raise PairmiError(
                f"worker: its backbone is {self.backbone}, but {unit.name} was cut for another one; "
                "let all workers have the same weights and the same version of pairmi"
            )
        return self.job(unit)


def task_name(kind: str, settings: Mapping[str, Any]) -> str:
    """The kind of work with a hash of its settings."""
    return f"{kind}-{hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]}"


def bisect_failures(
    work: Callable[[Sequence[Item]], Result], items: Sequence[Item], name: Callable[[Item], str]
) -> tuple[list[Result], list[Failure]]:
    """Work on all items at once; where that raises, on each half, so that an item that cannot be done fails alone."""
    try:
        return [work(items)], []
    except REFUSALS as error:
        if len(items) == 1:
            said = " ".join(str(error).split())
            return [], [Failure(name(items[0]), said if isinstance(error, PairmiError) else f"{type(error).__name__}: {said}")]
    middle = len(items) // 2
    first, second = bisect_failures(work, items[:middle], name), bisect_failures(work, items[middle:], name)
    return first[0] + second[0], first[1] + second[1]


def settled(outcomes: Iterable[Outcome], report: Callable[[Failure], object], patience: int = 100) -> Iterator[Outcome]:
    """Pass outcomes on and report their failures; raises `Incomplete` after the last outcome if there were any.

    A run in which nothing succeeds, or nothing before `patience` failures, is refused with the first failure: then it is not the
    canvases that are wrong.
    """
    held: list[Failure] = []  # until something succeeds
    failed, succeeded = 0, False
    for outcome in outcomes:
        failed, succeeded = failed + len(outcome.failures), succeeded or outcome.value is not None
        held += outcome.failures
        if succeeded:
            for failure in held:
                report(failure)
            held.clear()
        elif failed >= patience:
            break
        yield outcome
    if held:
        raise PairmiError(str(held[0]) if failed == 1 else f"{held[0]} (the first of {failed} that failed; none succeeded)")
    if failed:
        raise Incomplete(f"{failed} could not be done, named above; everything else is finished")
