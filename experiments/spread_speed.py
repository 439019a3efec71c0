"""How much faster two workers on Ray label than one, of one thread each; measured alternately, for cores that are shared with others.

    python experiments/spread_speed.py [--rounds 5]

Labels states of the Sudoku model. The clock runs from the moment when the first worker takes its first unit to the last outcome; the
first unit of each worker, with which it fetches the model, is not counted.
"""

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from pairmi.loading import load
from pairmi.mi.probe import Probe
from pairmi.model import Model
from pairmi.spread.ray import Ray
from pairmi.spread.units import Unit, backbone_hash
from pairmi.training.labels import Labelling
from pairmi.training.states import State, SudokuStates


@dataclass(frozen=True)
class Given:
    """States that are already there, the same in every unit, so that all units cost the same."""

    states: list[State]

    def about(self) -> dict[str, Any]:
        return {"name": "given"}

    def draw(self, model: Model, seed: int, shard: int, count: int) -> list[State]:
        return self.states


def rate(job: Labelling, size: int, workers: int, each: int) -> float:
    """Units a second."""
    name, count = backbone_hash(job.model), workers * (1 + each)

    def units() -> Iterator[Unit]:
        for n in range(count):
            yield Unit("labels", 0, n * size, (n + 1) * size, name)

    for n, outcome in enumerate(Ray(workers).run(job, units()), 1):
        assert outcome.value is not None, outcome.failures
        if n == workers:
            start = time.perf_counter()
    return (count - workers) / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--states", type=int, default=8, help="in a unit")
    parser.add_argument("--each", type=int, default=6, help="units for each worker")
    parser.add_argument("--backbone", default="sudoku")
    options = parser.parse_args()
    os.environ.setdefault("RAY_worker_niceness", "0")
    import ray

    model = load(options.backbone)
    job = Labelling(model, Given(SudokuStates().draw(model, 0, 0, options.states)), Probe())
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ratios = []
    for number in range(options.rounds):
        one, two = (rate(job, options.states, workers, options.each) for workers in ((1, 2) if number % 2 else (2, 1)))
        one, two = (one, two) if number % 2 else (two, one)
        ratios.append(two / one)
        print(
            f"round {number + 1}: {one * options.states:.2f} and {two * options.states:.2f} states a second, {ratios[-1]:.2f}x", flush=True
        )
    ray.shutdown()
    print(f"two workers: {median(ratios):.2f}x of one (median of {options.rounds}; {min(ratios):.2f}-{max(ratios):.2f})")


if __name__ == "__main__":
    main()
