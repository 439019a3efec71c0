"""The memory of the driver while it decodes canvases on Ray, one a unit: it must not grow with their number.

    python experiments/spread_memory.py [--units 50000]

Decodes the same little canvas again and again in an exact world of three bits. Prints the resident memory of this process on the way,
and exits with 1 if it grows by more than 10 % from a fiftieth of the units to the last.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from pairmi.commands.decode import Canvas, Filling
from pairmi.commit import Sampling
from pairmi.loading import load
from pairmi.spread.local import Local
from pairmi.spread.ray import Ray
from pairmi.spread.units import Unit, backbone_hash


def resident() -> float:
    """Megabytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=50_000)
    parser.add_argument("--workers", type=int, default=2, help="0 = in this process")
    options = parser.parse_args()
    os.environ.setdefault("RAY_worker_niceness", "0")
    model = load("xor")
    name, tokens = backbone_hash(model), model.vocab.encode("...")

    def units() -> Iterator[Unit]:
        for n in range(options.units):
            yield Unit("decode", 0, n, n + 1, name, (Canvas(n, f"canvas {n}", "...", tokens, None),))

    marks = [max(1, int(options.units * share)) for share in (0.02, 0.1, 0.25, 0.5, 0.75, 1)]
    memory: dict[int, float] = {}
    start = time.monotonic()
    engine = Ray(options.workers) if options.workers else Local()
    for n, outcome in enumerate(engine.run(Filling(model, "sequential", Sampling(), steps=False, batch=256), units()), 1):
        assert outcome.unit.start == n - 1
        assert len(outcome.value) == 1
        if n in marks:
            memory[n] = resident()
            print(f"{n} units: {memory[n]:.0f} MB, {time.monotonic() - start:.0f} s", flush=True)
    growth = memory[marks[-1]] / memory[marks[0]] - 1
    print(f"from {marks[0]} to {marks[-1]} units the memory of the driver grew by {100 * growth:.1f} %")
    sys.exit(growth > 0.1)


if __name__ == "__main__":
    main()
