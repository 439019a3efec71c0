"""The page of results about antibodies, made by a model that nobody trained."""

import runpy
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from heads import save_head
from pairmi.cli import main
from pairmi.loading import load
from pairmi.mi.head import LowRankConfig, LowRankHead
from proteins import SHAPE, opinionated_weights

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "antibody_results.py"
LONG = replace(SHAPE, longest=126)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.syspath_prepend(EXPERIMENT.parent)  # as Python does for a script
    monkeypatch.setattr(sys, "argv", [str(EXPERIMENT), *arguments])
    runpy.run_path(str(EXPERIMENT), run_name="__main__")


def test_first_the_rules_without_pairs_then_a_head_from_the_samples_and_all_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = opinionated_weights(tmp_path / "p.safetensors", shape=LONG)
    records, out = tmp_path / "records.jsonl", tmp_path / "docs" / "page.md"
    command = [
        "--model",
        backbone,
        "--sequences",
        "8",
        "--tried",
        "6",
        "--lengths",
        "14",
        "15",
        "--clusters",
        "3",
        "--scored",
        "1",
        "--blocks",
        "2",
    ]
    command += ["--precision", "bfloat16", "--records", str(records), "--work", str(tmp_path), "--out", str(out)]
    run(monkeypatch, *command)
    first = out.read_text()
    assert "rules that look at pairs were left out" in first
    assert "Noise floor" in first
    assert "mi-guided" not in first
    labels = str(tmp_path / "labels")
    states = ["--states", "64", "--shard", "8", "--positions", "1", "--floor", "0.5"]
    assert main(["labels", "--backbone", backbone, "--data", str(tmp_path / "reference.fasta"), "--out", labels, *states]) == 0
    torch.manual_seed(0)
    untrained = LowRankHead(LowRankConfig(16, 20, inner=8, forms=2, rank=2, mixer=4))
    head = save_head(tmp_path / "antiberty-head.safetensors", untrained, load(backbone))
    before = (tmp_path / "records-bfloat16.jsonl").read_text()
    run(monkeypatch, *command, "--head", head, "--labels", labels)
    text = out.read_text()
    for part in ("| mi-guided:budget=2,penalty=1", "Cost beside a pass", "1 + 1 |V| unpruned", "FR3", "R2 of the MI"):
        assert part in text
    assert "left out" not in text
    assert (tmp_path / "records-bfloat16.jsonl").read_text().startswith(before)  # nothing was made again
    for figure in ("antibody", "antibody_head", "antibody_map"):
        assert (out.parent / "figures" / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
