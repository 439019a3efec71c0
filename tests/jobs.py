"""Cheap work for engines: numbers, with whatever can go wrong on the way."""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pairmi.backbones.tabular import Tabular
from pairmi.loading import load
from pairmi.spread.units import Outcome, Unit, backbone_hash, bisect_failures
from pairmi.types import Backbone, PairMatrix, Prediction

XOR = load("xor")


@dataclass(frozen=True)
class Squares:
    """The squares of a unit's numbers, and the process that reckoned them; raises on some, and dies of others."""

    model: Backbone = XOR
    bad: tuple[int, ...] = ()
    deadly: tuple[int, ...] = ()
    dead: Any = None  # a folder where the dead are remembered: with it, a number kills once only
    pause: float = 0.0

    def __call__(self, unit: Unit) -> Outcome:
        time.sleep(self.pause)
        parts, failures = bisect_failures(self._squares, range(unit.start, unit.stop), lambda number: f"number {number}")
        return Outcome(unit, [square for part in parts for square in part] or None, tuple(failures))

    def _squares(self, numbers: Sequence[int]) -> list[tuple[int, int]]:
        for number in numbers:
            if number in self.bad:
                raise ZeroDivisionError(f"{number} is bad")
            if number in self.deadly and not (self.dead is not None and (self.dead / str(number)).exists()):
                if self.dead is not None:
                    (self.dead / str(number)).touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return [(number**2, os.getpid()) for number in numbers]


@dataclass(frozen=True)
class Patient:
    """Numbers, the first of which is not done before the last is."""

    last: int
    folder: Any
    model: Backbone = XOR

    def __call__(self, unit: Unit) -> Outcome:
        done, patience = self.folder / "done", time.monotonic() + 60
        if unit.start == self.last:
            done.touch()
        while unit.start == 0 and not done.exists():
            assert time.monotonic() < patience, "the last one never came"
            time.sleep(0.01)
        return Outcome(unit, unit.start)


@dataclass(frozen=True)
class Blind:
    """An estimate that cannot be had."""

    def __call__(self, prediction: Prediction, backbone: Backbone, rng: Any) -> PairMatrix:
        raise RuntimeError("nothing to be seen")


def units(count: int, size: int = 3, backbone: Backbone = XOR) -> Iterator[Unit]:
    return (Unit("squares", 0, n * size, (n + 1) * size, backbone_hash(backbone)) for n in range(count))


def squares(outcomes: Sequence[Outcome]) -> list[int]:
    return [square for outcome in outcomes for square, _ in outcome.value or ()]


class Nowhere:
    """No folder at all."""

    def __truediv__(self, name: str) -> None:
        return None


class Drifting(Tabular):
    """Not the same any more when it arrives somewhere else."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.weights = torch.roll(self.weights + torch.arange(len(self.weights)), 1)


class Touchy(Tabular):
    """Cannot take one canvas."""

    def __call__(self, tokens: torch.Tensor) -> Any:
        if bool((tokens[:, 0] == 1).any()):
            raise RuntimeError("the first position must not be 1")
        return super().__call__(tokens)
