import json
from pathlib import Path

import pytest
import torch

from heads import tiny
from pairmi.cli import main
from pairmi.commands.plan import described, measured
from pairmi.mi.probe import Probe
from pairmi.training.labels import Effort


def test_the_reckoning() -> None:
    model = tiny()
    sample = [torch.tensor([4, 4, 4, 4, 0, 1, 2, 3]), torch.tensor([4, 4, 0, 1, 2, 3, 0, 1])]
    plan = measured(model, sample, Probe(floor=0.0), states=1000, workers=4)
    assert (plan["rows_per_state"], plan["full_rows_per_state"]) == (1 + 3 * 4, 1 + 3 * 4)  # 4 and 2 unknown, of 4 symbols
    assert plan["rows"] == 13_000
    assert plan["rows_error"] == pytest.approx(4.0)  # the standard deviation of 17 and 9, over the root of 2
    width, length, depth = 16, 8, 2
    products = 2 * length * width * (12 * width * depth + 4)  # of the blocks and of the readout
    assert plan["flops_per_row"] == products + depth * 4 * length * length * width
    assert plan["flops"] == plan["rows"] * plan["flops_per_row"]
    assert plan["seconds_per_row"] > 0
    assert plan["hours"] == pytest.approx(plan["core_hours"] / 4) == pytest.approx(13_000 * plan["seconds_per_row"] / 3600 / 4)
    assert plan["megabytes"] == pytest.approx(1000 * (4 * 28 + 5 * 8) / 1e6)


def test_pruning_and_lengths_are_taken_into_account() -> None:
    model = tiny()
    sample = [torch.full((8,), 4)]
    plan = measured(model, sample, Probe(floor=0.5), 10, 1)
    assert plan["rows_per_state"] < plan["full_rows_per_state"] == 33
    assert "from one state" in described(plan)


def test_a_few_positions_cost_less() -> None:
    plan = measured(tiny(), [torch.full((8,), 4)], Probe(floor=0.0), 10, 1, Effort(positions=3))
    assert plan["rows_per_state"] == 1 + 3 * 4
    assert plan["full_rows_per_state"] == 33


def test_for_people_and_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["plan", "--backbone", "sudoku4", "--states", "1000", "--workers", "8", "--sample", "3", "--tflops", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1000 states for sudoku4, estimated from 3 states of 16 positions, ")
    assert [line.split()[0] for line in lines[1:]] == ["rows", "FLOPs", "core-hours", "hours", "labels", "hours"]
    file = tmp_path / "canvases"
    file.write_text("1...............\n" * 9)
    assert main(["plan", "--backbone", "sudoku4", "--states", "7", "--canvas", str(file), "--sample", "2", "--floor", "0", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["measured"], plan["rows_per_state"], plan["rows"], plan["hours_at_tflops"]) == (
        2,
        54,
        7 * 54,
        None,
    )  # none of the 7 peers can be 1
    assert plan["rows_error"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--states", "0"], "argument --states: expected a whole number of at least 1, got '0'"),
        (["--states", "9", "--workers", "0"], "argument --workers: expected a whole number of at least 1, got '0'"),
        (["--states", "9", "--tflops", "0"], "argument --tflops: expected a number above 0, got '0'"),
    ],
)
def test_what_cannot_be_planned_is_refused(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main(["plan", "--backbone", "sudoku4", *arguments]) == 2
    assert capsys.readouterr().err == f"pairmi plan: {message}; see 'pairmi plan --help'\n"


def test_a_model_of_any_length_needs_one(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from foreign import made

    folder = made("letters", tmp_path)
    assert main(["plan", "--backbone", folder, "--states", "9"]) == 2
    assert "takes sequences of any length; say which with --length, or give canvases with --canvas" in capsys.readouterr().err
    assert main(["plan", "--backbone", folder, "--states", "9", "--length", "5", "--sample", "2"]) == 0
    assert "of 5 positions" in capsys.readouterr().out
