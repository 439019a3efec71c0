"""The experiments on kills and on memory, small."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from leftovers import MARK, left

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
ENVIRONMENT = {"RAY_worker_niceness": "0", "OMP_NUM_THREADS": "1"}


def experiment(name: str, *arguments: str) -> str:
    run = subprocess.run(
        [sys.executable, EXPERIMENTS / name, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env=os.environ | ENVIRONMENT,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_a_killed_worker_and_a_killed_driver_leave_no_trace_in_the_store() -> None:
    said = experiment("spread_kills.py", "--kills", "2", "--units", "12", "--pause", "0.1", "--no-orphans").splitlines()
    assert said[0].startswith("kill 1: worker ")
    assert said[1].startswith("kill 2: driver ")
    assert said[2] == "2 kills; 12 of 12 units, 48 states; the same bytes as undisturbed"


def test_the_memory_of_the_driver_does_not_grow_and_its_ray_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, "memory")
    said = experiment("spread_memory.py", "--units", "1500", "--workers", "1").splitlines()
    assert said[-1].startswith("from 30 to 1500 units the memory of the driver grew by ")
    monkeypatch.delenv(MARK)
    assert left("memory", patience=30) == []
