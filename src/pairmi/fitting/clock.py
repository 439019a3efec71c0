"""How much of the time is left, over all starts of a run that may be killed."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pairmi.backbones.checkpoint import write_whole

TICK = 2.0  # seconds between two notes of the time


class Clock:
    """The seconds that each stage has taken, kept in a file."""

    def __init__(self, file: Path, minutes: float) -> None:
        self.file, self.total = file, 60 * minutes
        self.seconds: dict[str, float] = json.loads(file.read_text()) if file.is_file() else {}

    @property
    def spent(self) -> float:
        """In all stages."""
        return sum(self.seconds.values(), 0.0)

    @property
    def left(self) -> float:
        """Until the end; negative when it is over."""
        return self.total - self.spent

    def add(self, name: str, seconds: float) -> None:
        """Count time that has passed already."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        write_whole(self.file, json.dumps(self.seconds).encode())

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time within as that of a stage; noted every other second, so that a kill loses none."""
        over, began, before = threading.Event(), time.monotonic(), self.seconds.get(name, 0.0)

        def note() -> None:
            self.seconds[name] = before + time.monotonic() - began
            write_whole(self.file, json.dumps(self.seconds).encode())

        def ticking() -> None:
            while not over.wait(TICK):
                note()

        thread = threading.Thread(target=ticking, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            note()

    def words(self) -> str:
        """For people."""
        return f"{max(0.0, self.left) / 60:.1f} of {self.total / 60:g} minutes left"
