"""The options that say where work is done."""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import IO

from pairmi.spread.local import Local
from pairmi.spread.ray import Ray
from pairmi.spread.units import Engine
from pairmi.types import PairmiError


def chosen_engine(options: argparse.Namespace) -> Engine:
    """`--engine` with its workers: as many as this machine has cores, unless told otherwise."""
    if options.engine == "local":
        if options.workers is not None or options.gpus_per_worker:
            raise PairmiError("--workers and --gpus-per-worker are for --engine ray")
        return Local()
    return Ray(os.cpu_count() or 1 if options.workers is None else options.workers, options.gpus_per_worker)


def loading_device(options: argparse.Namespace) -> str | None:
    """Where this process needs the model: with Ray its workers compute, and take it to their own devices."""
    return "cpu" if options.engine == "ray" else None


@contextmanager
def results_alone() -> Iterator[IO[str]]:
    """Lend standard output; whatever else is printed meanwhile, as by Ray when a worker dies, goes to standard error."""
    out = sys.stdout
    with redirect_stdout(sys.stderr):
        yield out
