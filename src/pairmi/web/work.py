"""Model work outside the event loop: a few workers, a bounded queue, and an end between two backbone calls."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from pairmi.counting import joined
from pairmi.model import Model, Wrapped
from pairmi.types import PairmiError, Prediction, Tokens

PIECE = 8  # sequences that one backbone call may evaluate before it looks whether anybody still wants them
PAUSE = 0.1  # seconds between two reports of progress

Event = dict[str, Any]  # what becomes a line of JSON


class Stopped(Exception):
    """Nobody wants the result any more."""


class Busy(PairmiError):
    """The queue is full."""


class Watch:
    """Whether a piece of work should go on, how far it is, and who is told."""

    def __init__(self, seconds: float = float("inf"), tell: Callable[[Event], None] = lambda event: None) -> None:
        self.seconds, self.tell = seconds, tell
        self.rows = 0
        self.total = 0  # rows expected, where that is known
        self._stop = threading.Event()
        self._end = float("inf")
        self._next = 0.0

    def begin(self) -> None:
        """Start the clock; waiting in the queue is free."""
        self._end = time.monotonic() + self.seconds

    def stop(self) -> None:
        """End the work at its next backbone call."""
        self._stop.set()

    def evaluated(self, rows: int) -> None:
        """Note what was done, tell of it now and then, and stop where that is due."""
        self.rows += rows
        now = time.monotonic()
        if self._stop.is_set():
            raise Stopped
        if now > self._end:
            raise PairmiError(f"stopped after {self.seconds:g} s; choose a quicker rule or estimate, or give more positions")
        if now >= self._next:
            self._next = now + PAUSE
            self.tell({"rows": self.rows, "total": self.total})


def watched(model: Model, watch: Watch) -> Model:
    """The same model, which can be stopped between two calls and is called with a few rows at a time."""

    def passed(tokens: Tokens) -> Prediction:
        watch.evaluated(0)
        prediction = model.backbone(tokens)
        watch.evaluated(len(tokens))
        return prediction

    def call(tokens: Tokens) -> Prediction:
        return joined([passed(piece) for piece in tokens.split(PIECE)])

    return replace(model, backbone=Wrapped(model.backbone, call))


Work = Callable[[Watch], Event]


class Lane:
    """Workers that take their work in order, with room for so much of it, each for so many seconds at most."""

    def __init__(self, workers: int, room: int, seconds: float) -> None:
        self.room, self.seconds = room, seconds
        self.taken = 0  # waiting or at work
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="pairmi")

    def submit(self, work: Work, tell: Callable[[Event], None] = lambda event: None) -> tuple[Watch, "Future[Event]"]:
        """Queue some work; the watch stops it, the future has its result."""
        with self._lock:
            if self.taken >= self.room:
                raise Busy(f"the model is busy with {self.taken} other requests; try again in a few seconds")
            self.taken += 1
        watch = Watch(self.seconds, tell)
        future = self._pool.submit(_begun, work, watch)
        future.add_done_callback(self._left)
        return watch, future

    def close(self) -> None:
        """Forget what waits; what is at work ends by itself or with the process."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _left(self, future: "Future[Event]") -> None:
        with self._lock:
            self.taken -= 1


def _begun(work: Work, watch: Watch) -> Event:
    watch.begin()
    return work(watch)
