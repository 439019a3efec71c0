"""Where the time of decoding goes: passes of the backbone, estimates of MI, the rule, and the loop around them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, cast

from pairmi.model import Wrapped
from pairmi.selectors.wrappers import Coupled, OneAtATime
from pairmi.types import Backbone, Selector


@dataclass
class Stopwatch:
    """Seconds by what was going on; what runs inside something else is not counted there."""

    seconds: dict[str, float] = field(default_factory=dict)
    _running: list[str] = field(default_factory=list)
    _since: float = 0.0

    @contextmanager
    def during(self, name: str) -> Iterator[None]:
        """Time what happens inside, or as a decorator every call, under this name."""
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


def timed_passes(backbone: Backbone, watch: Stopwatch) -> Backbone:
    """A backbone whose passes are timed."""
    return Wrapped(backbone, watch.during("pass")(backbone))


def watched(rule: Any, watch: Stopwatch) -> Selector:
    """A rule, and the estimate that it holds, if it holds one, under the watch."""
    return cast(Selector, watch.during("rule")(_with_timed_mi(rule, watch)))


def _with_timed_mi(rule: Any, watch: Stopwatch) -> Any:
    if isinstance(rule, OneAtATime | Coupled):
        return replace(rule, rule=_with_timed_mi(rule.rule, watch))
    holds = is_dataclass(rule) and "mi" in {part.name for part in fields(rule)}
    return replace(rule, mi=watch.during("mi")(rule.mi)) if holds else rule
