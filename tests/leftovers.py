"""Which processes are left of those that were started under a mark."""

import time
from pathlib import Path

MARK = "PAIRMI_TESTED"  # the environment variable that they inherit


def left(mark: str, patience: float) -> list[str]:
    """The command lines of those that are still there after so many seconds."""
    end = time.monotonic() + patience
    while (found := _marked(f"{MARK}={mark}".encode())) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def _marked(entry: bytes) -> list[str]:
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and entry in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:  # it has just ended, or is somebody else's
            continue
    return found
