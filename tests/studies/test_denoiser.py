import json
from pathlib import Path

import pytest
import torch

from denoiser import main, scaled
from pairmi.backbones.checkpoint import load_tensors
from pairmi.loading import load
from pairmi.training.optimizer import Rates
from pairmi.training.run import draw_curve

TINY = ["--width", "8", "--depth", "1", "--heads", "1", "--batch", "4", "--grids", "20"]


def test_the_command_trains_draws_its_curve_and_writes_weights_that_load(tmp_path: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "weights.safetensors"
    command = ["--run", str(run), "--out", str(out), "--steps", "3", *TINY]
    assert main(command) == 0
    assert (run / "curve.png").read_bytes().startswith(b"\x89PNG")
    record = json.loads((run / "log.jsonl").read_text().splitlines()[-1])
    assert record["step"] == 3
    assert 0 <= record["solved"] <= 1
    weights, about = load_tensors(out)
    assert {tensor.dtype for tensor in weights.values()} == {torch.float16}
    assert about["steps"] == 3
    assert about["corpus"]["grids"] == 20
    assert about["training"]["seed"] == 0
    assert len(about["provenance"]["commit"]) in (7, 40)
    model = load(str(out))
    assert model(torch.full((2, 81), 9)).log_probs.shape == (2, 81, 9)
    before = out.read_bytes()
    assert main(command) == 0  # already finished: nothing is trained again, and the same is written
    assert load_tensors(out)[0].keys() == weights.keys()
    assert len(out.read_bytes()) == len(before)


def test_another_configuration_in_the_same_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    run = tmp_path / "run"
    assert main(["--run", str(run), "--steps", "1", *TINY]) == 0
    before = (run / "checkpoint.safetensors").read_bytes()
    assert main(["--run", str(run), "--steps", "1", "--seed", "1", *TINY]) == 2
    assert "another configuration" in capsys.readouterr().err
    assert (run / "checkpoint.safetensors").read_bytes() == before


def test_training_goes_on_from_weights_with_more_blocks_but_not_with_others(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    first, second = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    common = ["--steps", "1", *TINY]
    assert main([*common, "--run", str(tmp_path / "a"), "--out", str(first)]) == 0
    assert main([*common, "--run", str(tmp_path / "b"), "--out", str(second), "--start", str(first), "--depth", "3"]) == 0
    assert load_tensors(second)[1]["shape"]["depth"] == 3
    assert load_tensors(second)[1]["start"]
    for start, changed in ((second, []), (first, ["--width", "16"])):
        assert main([*common, "--run", str(tmp_path / "c"), "--start", str(start), *changed]) == 2
        assert "is no transformer of this shape or of fewer blocks" in capsys.readouterr().err


def test_a_curve_has_a_panel_for_each_figure(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps({"step": n, "seconds": n, "rate": 1.0, "loss": 1 / n, "solved": n / 5}) + "\n" for n in range(1, 5)))
    draw_curve(log, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 1000


@pytest.mark.parametrize("wrong", ["--peak 0", "--micro 0", "--width 0", "--heads -1", "--followed 1.5", "--grids 0", "--task x"])
def test_impossible_options_are_refused_in_one_line(wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--run", str(tmp_path), *wrong.split()])
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("wrong", ["--start nowhere", "--task protein", "--task protein --data missing.fasta"])
def test_what_cannot_be_trained_is_refused_before_it_begins(wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["--run", str(tmp_path / "run"), *TINY, *wrong.split()]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_rates_are_scaled_together() -> None:
    half = scaled(Rates(muon=0.02, adam=0.002, momentum=0.9), 0.5)
    assert (half.muon, half.adam, half.momentum) == (0.01, 0.001, 0.9)
