"""A run that is killed and started again ends with the same bits; also the command that the tests kill."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from cycles import Cycles
from pairmi.backbones.checkpoint import load_tensors, save_tensors
from pairmi.backbones.transformer import TransformerConfig
from pairmi.training.loop import fit, learning_rate, read_log
from pairmi.types import PairmiError
from studies.denoise import Denoise, DenoiseConfig

SCHEDULE: dict[str, Any] = {"steps": 60, "warmup": 5, "decay": 0.4, "save_every": 4, "evaluate_every": 6, "quiet": True}


def job(pause: float = 0.0, width: int = 16, **changes: Any) -> Denoise:
    shape = TransformerConfig(symbols="abcd", length=8, width=width, depth=1, heads=2)
    return Denoise(shape, DenoiseConfig(**{"batch": 8, "micro": 4, "followed": 4} | changes), Cycles(pause))


def same(first: Path, second: Path) -> bool:
    """Whether two checkpoints hold the same bits and the same description, but for the time they took."""
    (ours, about), (theirs, other) = load_tensors(first), load_tensors(second)
    equal = ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
    return equal and about | {"seconds": 0} == other | {"seconds": 0}


def records(run: Path) -> list[dict[str, float]]:
    return [{key: value for key, value in record.items() if key != "seconds"} for record in read_log(run / "log.jsonl")]


def contents(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.iterdir()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing interrupted."""
    run = tmp_path_factory.mktemp("whole")
    assert fit(job(), run, **SCHEDULE) == run / "checkpoint.safetensors"
    return run


def start(run: Path) -> subprocess.Popen:
    command, paths = [sys.executable, __file__, str(run)], os.pathsep.join(filter(None, sys.path))  # where pytest finds the experiments
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": paths})
    assert process.stdout.readline() == "ready\n"
    return process


def test_a_run_that_is_killed_ends_bit_identical(whole: Path, tmp_path: Path) -> None:
    file, chance, done = tmp_path / "checkpoint.safetensors", random.Random(0), list[int]()
    for _ in range(3):
        process = start(tmp_path)
        before = file.stat().st_mtime_ns if file.is_file() else 0
        while not file.is_file() or file.stat().st_mtime_ns == before:
            assert process.poll() is None
            time.sleep(0.001)
        time.sleep(chance.uniform(0.0, 0.04))
        process.kill()
        assert process.wait() == -9
        done.append(len(load_tensors(file)[1]["rates"]))
    assert done == sorted(set(done))
    assert done[-1] < 60
    assert start(tmp_path).wait() == 0
    assert same(file, whole / "checkpoint.safetensors")
    assert same(tmp_path / "stable.safetensors", whole / "stable.safetensors")
    assert records(tmp_path) == records(whole)
    assert [record["step"] for record in records(tmp_path)] == list(range(6, 61, 6))


@pytest.mark.parametrize("moment", range(1, 60, 7))
def test_a_run_that_stops_between_any_two_steps_ends_bit_identical(whole: Path, tmp_path: Path, moment: int) -> None:
    """Within one process: an exception in the middle of a step, and a log line that was half written."""
    stopped = job()
    advance = stopped.advance

    def fail(step: int, rate: float) -> float:
        if step == moment:
            raise KeyboardInterrupt
        return advance(step, rate)

    stopped.advance = fail
    with pytest.raises(KeyboardInterrupt):
        fit(stopped, tmp_path, **SCHEDULE)
    with open(tmp_path / "log.jsonl", "a") as log:
        log.write('{"step": 6, "sec')
    fit(job(), tmp_path, **SCHEDULE)
    assert same(tmp_path / "checkpoint.safetensors", whole / "checkpoint.safetensors")
    assert records(tmp_path) == records(whole)


def test_how_often_it_saves_and_evaluates_changes_nothing(whole: Path, tmp_path: Path) -> None:
    fit(job(), tmp_path, **SCHEDULE | {"save_every": 7, "evaluate_every": 60})
    assert same(tmp_path / "checkpoint.safetensors", whole / "checkpoint.safetensors")
    assert [record["step"] for record in records(tmp_path)] == [60]


def test_a_finished_run_is_left_alone(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    before = contents(tmp_path)
    done = job()
    fit(done, tmp_path, **SCHEDULE)
    assert contents(tmp_path) == before
    saved, _ = load_tensors(tmp_path / "checkpoint.safetensors")
    assert all(torch.equal(tensor, saved[name]) for name, tensor in done.tensors().items())


@pytest.mark.parametrize(
    ("other", "names"), [({"seed": 1}, "training"), ({"width": 32}, "shape"), ({"batch": 4, "width": 32}, "shape, training")]
)
def test_another_configuration_is_refused(whole: Path, tmp_path: Path, other: dict[str, int], names: str) -> None:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    before = contents(tmp_path)
    with pytest.raises(PairmiError, match=rf"comes from another configuration \(different: {names}\); choose another --run or remove it"):
        fit(job(**other), tmp_path, **SCHEDULE)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("change", [{"steps": 80}, {"steps": 40}, {"decay": 0.5}, {"warmup": 6}])
def test_another_schedule_is_refused(whole: Path, tmp_path: Path, change: dict[str, float]) -> None:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    before = contents(tmp_path)
    with pytest.raises(PairmiError, match="has done 60 steps of another learning-rate schedule; keep --steps, or choose another --run"):
        fit(job(), tmp_path, **SCHEDULE | change)
    assert contents(tmp_path) == before


def test_a_longer_schedule_goes_on_from_the_stable_phase(whole: Path, tmp_path: Path) -> None:
    longer = SCHEDULE | {"steps": 90}
    fit(job(), tmp_path / "from_the_start", **longer)
    (tmp_path / "going_on").mkdir()
    shutil.copy(whole / "stable.safetensors", tmp_path / "going_on" / "checkpoint.safetensors")
    assert len(load_tensors(whole / "stable.safetensors")[1]["rates"]) == 36  # the rate falls after 60 - 24 steps
    fit(job(), tmp_path / "going_on", **longer)
    assert same(tmp_path / "going_on" / "checkpoint.safetensors", tmp_path / "from_the_start" / "checkpoint.safetensors")
    assert [record["step"] for record in records(tmp_path / "going_on")] == list(range(42, 91, 6))


@pytest.mark.parametrize("damage", ["truncated", "foreign", "weights"])
def test_a_damaged_checkpoint_is_refused_and_left_alone(whole: Path, tmp_path: Path, damage: str) -> None:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "checkpoint.safetensors"
    message = "is damaged or not a safetensors file"
    if damage == "weights":
        save_tensors(file, {"x": torch.zeros(2)}, {"shape": {"width": 16}})
        message = "is not a checkpoint of a training run; choose another --run or remove it"
    else:
        file.write_bytes(file.read_bytes()[:-5] if damage == "truncated" else b"not ours")
    before = contents(tmp_path)
    with pytest.raises(PairmiError, match=message):
        fit(job(), tmp_path, **SCHEDULE)
    assert contents(tmp_path) == before


def test_a_second_trainer_is_refused_and_a_killed_one_leaves_nothing_locked(tmp_path: Path) -> None:
    process = start(tmp_path)
    while not (tmp_path / "checkpoint.safetensors").is_file():
        assert process.poll() is None
        time.sleep(0.001)
    message = rf"train: .* is being trained in by process {process.pid}; wait for it, or choose another --run"
    with pytest.raises(PairmiError, match=message):
        fit(job(), tmp_path, **SCHEDULE)
    process.kill()
    process.wait()
    fit(job(), tmp_path, **SCHEDULE)
    assert [record["step"] for record in records(tmp_path)] == list(range(6, 61, 6))


@pytest.mark.parametrize("where", ["loss", "weights"])
def test_numbers_that_are_not_finite_are_never_saved(where: str, tmp_path: Path) -> None:
    broken = job()
    advance = broken.advance

    def breaks(step: int, rate: float) -> float:
        loss = advance(step, rate)
        if step == 6:
            broken.tensors()["model.position"][0, 0] = torch.inf
        return float("nan") if step == 6 and where == "loss" else loss

    broken.advance = breaks
    with pytest.raises(PairmiError, match=r"train: step [67] gave a loss of .* not finite in .*; the last checkpoint stays as it was"):
        fit(broken, tmp_path, **SCHEDULE)
    tensors, about = load_tensors(tmp_path / "checkpoint.safetensors")
    assert len(about["rates"]) == 4
    assert all(tensor.isfinite().all() for tensor in tensors.values())


def test_an_impossible_schedule_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PairmiError, match="train: expected steps, save_every and evaluate_every >= 1, got 60, 4 and 0"):
        fit(job(), tmp_path, **SCHEDULE | {"evaluate_every": 0})


def test_the_rate_warms_up_stays_and_falls_to_zero() -> None:
    rates = [learning_rate(step, 100, 10, 0.3) for step in range(100)]
    assert rates[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert rates[10:70] == [1.0] * 60
    assert rates[70:] == pytest.approx([(100 - step) / 30 for step in range(70, 100)])
    assert [learning_rate(step, 5, 0, 0.0) for step in range(5)] == [1.0] * 5


def test_progress_goes_to_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fit(job(), tmp_path / "loud", **SCHEDULE | {"steps": 3, "quiet": False})
    out, err = capsys.readouterr()
    assert out == ""
    assert "train: " in err
    fit(job(), tmp_path / "quiet", **SCHEDULE | {"steps": 3})
    assert capsys.readouterr() == ("", "")


def test_the_log_has_what_was_measured(whole: Path) -> None:
    log = read_log(whole / "log.jsonl")
    assert all(record.keys() == {"step", "seconds", "rate", "loss", "nll"} for record in log)
    assert [record["rate"] for record in log] == [learning_rate(int(record["step"]) - 1, 60, 5, 0.4) for record in log]
    assert json.loads((whole / "log.jsonl").read_text().splitlines()[-1])["step"] == 60


def test_a_run_with_a_deadline_goes_by_time_where_that_is_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("pairmi.training.loop.time.monotonic", lambda: now[0])
    slowed = job()
    real = slowed.advance

    def slow(step: int, rate: float) -> float:
        now[0] += 3.0
        return real(step, rate)

    monkeypatch.setattr(slowed, "advance", slow)
    rates = load_tensors(fit(slowed, tmp_path / "slow", **SCHEDULE, seconds=60.0))[1]["rates"]
    assert len(rates) == 21  # 60 steps were planned, of which each takes three seconds
    assert rates[-1] == pytest.approx(learning_rate(59, 60, 5, 0.4))
    assert sorted(rates[10:], reverse=True) == rates[10:]
    now[0] = 0.0
    assert load_tensors(fit(job(), tmp_path / "quick", **SCHEDULE, seconds=1e9))[1]["rates"] == [
        learning_rate(step, 60, 5, 0.4) for step in range(60)
    ]


if __name__ == "__main__":
    torch.set_num_threads(1)
    slow = job(pause=0.004)
    print("ready", flush=True)
    fit(slow, Path(sys.argv[1]), **SCHEDULE)
