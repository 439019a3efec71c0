"""Where the time of decoding goes: passes of the backbone, estimates of MI, the rule, and the loop around them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from pairmi.model import Wrapped
from pairmi.selectors.coupled import Coupled
from pairmi.selectors.one_at_a_time import OneAtATime
from pairmi.types import Backbone, Prediction, Selector, Tokens

Part = TypeVar("Part")


@dataclass
class Stopwatch:
    """Seconds by what was going on; what runs inside something else is not counted there."""

    seconds: dict[str, float] = field(default_factory=dict)
    _running: list[str] = field(default_factory=list)
    _since: float = 0.0

    @contextmanager
    def during(self, name: str) -> Iterator[None]:
        """Time what happens inside under this name."""
        self._turn()
        self._running.append(name)
        try:
            yield
        finally:
            self._turn()
            self._running.pop()

    def _turn(self) -> None:
        """Book the time since the last turn to whatever was running."""
        now = time.perf_counter()
        if self._running:
            self.seconds[self._running[-1]] = self.seconds.get(self._running[-1], 0.0) + now - self._since
        self._since = now


@dataclass(frozen=True)
class Timed:
    """An estimate ("mi") or a rule ("rule") under the watch."""

    inner: Any
    watch: Stopwatch
    name: str

    def __call__(self, *arguments: Any) -> Any:
        """What it gives."""
        with self.watch.during(self.name):
            return self.inner(*arguments)


def timed(part: Part, watch: Stopwatch, name: str) -> Part:
    """The same under the watch."""
    return cast(Part, Timed(part, watch, name))


def timed_passes(backbone: Backbone, watch: Stopwatch) -> Backbone:
    """A backbone whose passes are timed."""

    def call(tokens: Tokens) -> Prediction:
        with watch.during("pass"):
            return backbone(tokens)

    return Wrapped(backbone, call)


def watched(rule: Selector, watch: Stopwatch) -> Selector:
    """A rule, and the estimate that it holds, if it holds one, under the watch."""
    return timed(_with_timed_mi(rule, watch), watch, "rule")


def _with_timed_mi(rule: Any, watch: Stopwatch) -> Selector:
    if isinstance(rule, OneAtATime | Coupled):
        return replace(rule, rule=_with_timed_mi(rule.rule, watch))
    holds = is_dataclass(rule) and "mi" in {part.name for part in fields(rule)}
    return cast(Selector, replace(rule, mi=timed(rule.mi, watch, "mi")) if holds else rule)
