"""The page about protein design, made of small structures; an interrupted run goes on where it stopped."""

import runpy
import sys
from pathlib import Path

import pytest

from pairmi.backbones.checkpoint import load_tensors
from pairmi.cli import main
from pairmi.loading import load
from structures import cut

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "protein_design.py"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.syspath_prepend(EXPERIMENT.parent)  # as Python does for a script
    monkeypatch.setattr(sys, "argv", [str(EXPERIMENT), *arguments])
    runpy.run_path(str(EXPERIMENT), run_name="__main__")


def test_parts_one_after_the_other_make_the_page_and_a_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, records, out = tmp_path / "pdb", tmp_path / "records", tmp_path / "docs" / "design.md"
    folder.mkdir()
    cut(folder / "one.pdb", A=(53, 60))
    cut(folder / "two.pdb", A=(90, 98))
    labels = ["labels", "--structures", str(folder), "--out", str(tmp_path / "labels"), "--states", "12", "--shard", "6"]
    assert main([*labels, "--positions", "2"]) == 0
    command = ["--folder", str(folder), "--labels", str(tmp_path / "labels"), "--records", str(records), "--out", str(out)]
    command += [
        "--steps",
        "20",
        "--every",
        "1",
        "--calibrating",
        "4",
        "--designs",
        "2",
        "--round",
        "2",
        "--table",
        "one",
        "--proteins",
        "16",
    ]
    for part in ("heads", "settings", "prices"):
        run(monkeypatch, *command, "--part", part)
    assert not out.exists()
    kept = (records / "records.jsonl").read_text()
    run(monkeypatch, *command)
    text = out.read_text()
    assert (records / "records.jsonl").read_text().startswith(kept)  # nothing was measured again
    for words in ("The aim was at most 12 passes", "2 structures", ", verified", "Noise floor", "| sequential ", "R2 and mean absolute"):
        assert words in text
    for figure in ("design_prices", "design_table"):
        assert (out.parent / "figures" / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
    head = tmp_path / "proteinmpnn-head.safetensors"
    run(monkeypatch, *command, "--page", "--ship", str(head))
    assert "calibration" in load_tensors(head)[1]
    assert load("proteinmpnn", structure=folder / "one.pdb", head=str(head)).calibration is not None
    folds = [load_tensors(records / f"head-{fold}.safetensors")[1]["trained_on"]["lengths"] for fold in (0, 1)]
    assert folds == [[9, 9], [8, 8]]  # each has learnt from the other fold alone
