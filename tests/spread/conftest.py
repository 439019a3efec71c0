"""A real Ray on this machine, for the tests that ask for it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray

from leftovers import MARK, left


@pytest.fixture(scope="package")
def cluster() -> Iterator[None]:
    """Four processors, and nothing left of it afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        ours = (str(Path(__file__).parents[2] / part) for part in ("tests", "experiments"))
        patch.setenv("PYTHONPATH", os.pathsep.join((*ours, os.environ.get("PYTHONPATH", ""))))
        patch.setenv("RAY_worker_niceness", "0")  # on a busy machine Ray's 15 would make the tests slow
        patch.setenv(MARK, "cluster")
        ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        yield
        ray.shutdown()
    assert left("cluster", patience=30) == []
