"""Where the time of decoding goes: passes of the backbone, estimates of MI, the rule, and the loop around them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any, cast

from pairmi.selectors.one_at_a_time import OneAtATime
from pairmi.types import Backbone, Meter, PairMatrix, PairwiseMI, Prediction, RowStreams, Selection, Selector, Tokens, Turn, Vocab


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
class TimedBackbone:
    """A backbone under the watch."""

    backbone: Backbone
    watch: Stopwatch

    @property
    def vocab(self) -> Vocab:
        """The alphabet."""
        return self.backbone.vocab

    @property
    def length(self) -> int | None:
        """The only length it takes; None = any."""
        return self.backbone.length

    def __call__(self, tokens: Tokens) -> Prediction:
        """One pass."""
        with self.watch.during("pass"):
            return self.backbone(tokens)


@dataclass(frozen=True)
class TimedMI:
    """An estimate under the watch."""

    mi: PairwiseMI
    watch: Stopwatch

    def __call__(self, prediction: Prediction, backbone: Meter, rng: RowStreams) -> PairMatrix:
        """The matrix of each row."""
        with self.watch.during("mi"):
            return self.mi(prediction, backbone, rng)


@dataclass(frozen=True)
class TimedRule:
    """A rule under the watch."""

    rule: Selector
    watch: Stopwatch

    def __call__(self, turn: Turn) -> Selection:
        """Choose."""
        with self.watch.during("rule"):
            return self.rule(turn)


def watched(rule: Selector, watch: Stopwatch) -> TimedRule:
    """A rule, and the estimate that it holds, if it holds one, under the watch."""
    return TimedRule(_with_timed_mi(rule, watch), watch)


def _with_timed_mi(rule: Selector, watch: Stopwatch) -> Selector:
    own: Any = rule
    if isinstance(rule, OneAtATime):
        own = OneAtATime(_with_timed_mi(rule.rule, watch))
    elif is_dataclass(rule) and "mi" in vars(rule):
        own = replace(own, mi=TimedMI(own.mi, watch))
    return cast(Selector, own)
