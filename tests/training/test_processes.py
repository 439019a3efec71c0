"""Training with torchrun; also the command that the tests run in several processes."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from heads import labelled, tiny
from pairmi.backbones.checkpoint import load_tensors, save_tensors
from pairmi.cli import main
from pairmi.store import shard_file, write_shard
from pairmi.training.loop import read_log
from pairmi.training.processes import Processes, together
from pairmi.types import PairmiError

DENOISER = Path(__file__).parents[2] / "experiments" / "denoiser.py"
TINY = ["--width", "8", "--depth", "1", "--heads", "1", "--batch", "48", "--grids", "20", "--threads", "1"]


def train(run: Path, processes: int, steps: int = 6, what: Sequence[str] = (str(DENOISER), "--", *TINY)) -> list[float]:
    """The losses that a run logged; every process prints nothing but its bar."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    arguments = [*what, "--run", str(run), "--steps", str(steps), "--device", "cpu"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=300, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr[-2000:]
    return [record["loss"] for record in read_log(run / "log.jsonl")]


def test_one_process_has_everything() -> None:
    with together("cpu") as alone:
        assert alone == Processes(0, 1, "cpu")
        assert alone.leads
        assert alone.mine([1, 2, 3]) == [1, 2, 3]
        tensor = torch.ones(3)
        alone.total([tensor])
        assert torch.equal(tensor, torch.ones(3))


@pytest.mark.parametrize("count", [2, 3, 4, 7])
def test_every_piece_has_one_owner(count: int) -> None:
    pieces = list(range(6))
    owned = [piece for rank in range(count) for piece in Processes(rank, count).mine(pieces)]
    assert sorted(owned) == pieces
    assert [Processes(rank, count).leads for rank in range(count)] == [True] + [False] * (count - 1)


def pretend_gpus(monkeypatch: pytest.MonkeyPatch, gpus: int, **environment: str) -> list[int]:
    """As if there were so many; which of them becomes the current one."""
    current: list[int] = []
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: gpus)
    monkeypatch.setattr("torch.cuda.set_device", current.append)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return current


def test_a_process_takes_the_gpu_of_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    current = pretend_gpus(monkeypatch, 2)
    with together() as alone:
        assert (alone.device, current) == ("cuda:0", [0])
    groups: list[str] = []
    monkeypatch.setattr("torch.distributed.init_process_group", groups.append)
    monkeypatch.setattr("torch.distributed.get_rank", lambda: 5)
    for name in ("barrier", "destroy_process_group"):
        monkeypatch.setattr(f"torch.distributed.{name}", lambda: None)
    current = pretend_gpus(monkeypatch, 2, WORLD_SIZE="6", LOCAL_RANK="1", LOCAL_WORLD_SIZE="2")
    with together() as all_of_us:
        assert (all_of_us, current) == (Processes(5, 6, "cuda:1"), [1])
    with together("cpu") as all_of_us:
        assert (all_of_us, current) == (Processes(5, 6, "cpu"), [1])
    assert groups == ["cpu:gloo,cuda:nccl", "gloo"]


def test_every_process_needs_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_gpus(monkeypatch, 2, WORLD_SIZE="4", LOCAL_RANK="0", LOCAL_WORLD_SIZE="4")
    remedy = "start torchrun with --nproc-per-node 2, or train on the CPU with --device cpu"
    with pytest.raises(PairmiError, match=f"train: 4 processes on this machine need a GPU each, torch sees 2; {remedy}"), together():
        pass


def test_a_gpu_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert main(["train", "head", "--labels", str(tmp_path), "--run", str(tmp_path), "--device", "cuda"]) == 2
    assert "device='cuda': torch sees no GPU here; use device='cpu'" in capsys.readouterr().err


def test_any_number_of_processes_learns_the_same(tmp_path: Path) -> None:
    """Losses and weights of 1, 2 and 4 processes within float error; a run goes on with another number of them."""
    losses = {count: train(tmp_path / str(count), count) for count in (1, 2, 4)}
    tensors = {count: load_tensors(tmp_path / str(count) / "checkpoint.safetensors")[0] for count in losses}
    for count in (2, 4):
        assert losses[count] == pytest.approx(losses[1], rel=1e-5)
        for name, tensor in tensors[1].items():
            torch.testing.assert_close(tensors[count][name], tensor, rtol=1e-3, atol=1e-5, msg=name)
    train(tmp_path / "changed", 2, steps=3)
    assert train(tmp_path / "changed", 1)[-1] == pytest.approx(losses[1][-1], rel=1e-5)
    assert len(load_tensors(tmp_path / "changed" / "checkpoint.safetensors")[1]["rates"]) == 6


def test_any_number_of_processes_learns_the_same_head(tmp_path: Path) -> None:
    model, backbone = tiny(), tmp_path / "backbone.safetensors"
    save_tensors(backbone, model.backbone.state_dict(), {"shape": asdict(model.backbone.config)})
    labels, settings = labelled(model, 60)
    write_shard(shard_file(tmp_path / "labels", 0), labels, {"settings": settings, "provenance": {}})
    sizes = ["--batch", "12", "--inner", "8", "--forms", "2", "--rank", "4", "--mixer", "4", "--threads", "1"]
    what = ["-m", "--", "pairmi.training", "head", "--backbone", str(backbone), "--labels", str(tmp_path / "labels"), *sizes]
    losses = {count: train(tmp_path / str(count), count, what=what) for count in (1, 2, 4)}
    assert losses[2] == pytest.approx(losses[1], rel=1e-5)
    assert losses[4] == pytest.approx(losses[1], rel=1e-5)
    train(tmp_path / "changed", 4, steps=3, what=what)
    assert train(tmp_path / "changed", 2, what=what)[-1] == pytest.approx(losses[1][-1], rel=1e-5)
