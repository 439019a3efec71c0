"""Drivers and workers that are killed, and the memory of a driver: the experiments, small, and a benchmark."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from leftovers import MARK, left
from measurements import by_settings, plain
from sudoku_frontiers import main

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


def test_a_benchmark_whose_driver_is_killed_goes_on(tmp_path: Path) -> None:
    rules = ["top-k:k=3", "top-k:k=4", "eb", "threshold"]
    kept, file = tmp_path / "kept.jsonl", tmp_path / "all.jsonl"
    command = ["generate", "--limit", "2", "--rules", *rules, "--records", str(kept)]
    said = tmp_path / "said"
    with said.open("w") as errors:
        run = subprocess.Popen(
            [sys.executable, EXPERIMENTS / "sudoku_frontiers.py", *command, "--engine", "ray", "--workers", "2"],
            env=os.environ | ENVIRONMENT,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
    while not kept.is_file() or b"\n" not in kept.read_bytes():
        assert run.poll() is None, said.read_text()
        time.sleep(0.01)
    run.send_signal(signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    before = kept.read_bytes()
    assert 0 < before.count(b"\n") < 5
    main([*command, "--json", str(file)])
    assert kept.read_bytes().startswith(before)
    assert [record["settings"]["rule"] for record in plain(file)] == ["sequential", *rules]
    assert by_settings(plain(kept)) == by_settings(plain(file))  # none missing, none twice
