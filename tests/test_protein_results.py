"""The page of results about proteins, made by a model that nobody trained."""

import runpy
import sys
from pathlib import Path

import pytest
import torch

from heads import save_head
from pairmi.cli import main
from pairmi.loading import load
from pairmi.mi.head import LowRankConfig, LowRankHead
from pairmi.tasks.protein.residues import RESIDUES
from proteins import family_members, opinionated_weights, write_fasta
from structures import helix, write_structure

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "protein_results.py"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.syspath_prepend(EXPERIMENT.parent)  # as Python does for a script
    monkeypatch.setattr(sys, "argv", [str(EXPERIMENT), *arguments])
    runpy.run_path(str(EXPERIMENT), run_name="__main__")


def test_one_command_makes_the_page_and_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = opinionated_weights(tmp_path / "p.safetensors")
    torch.manual_seed(0)
    untrained = LowRankHead(LowRankConfig(16, 20, inner=8, forms=2, rank=2, mixer=4))
    head = save_head(tmp_path / "h.safetensors", untrained, load(backbone))
    train = write_fasta(tmp_path / "train.fasta", family_members(6, 3))
    validation = write_fasta(tmp_path / "validation.fasta", family_members(6, 8, seed=1))
    (tmp_path / "pdb").mkdir()
    for name in ("a", "b"):
        write_structure(tmp_path / "pdb" / f"{name}.pdb", (RESIDUES * 2)[:26], helix(26))
    labels = ["labels", "--backbone", backbone, "--data", str(train), "--out", str(tmp_path / "labels"), "--states", "32", "--shard", "8"]
    assert main([*labels, "--floor", "0.2"]) == 0
    out = tmp_path / "docs" / "page.md"
    command = ["--model", backbone, "--head", head, "--train", str(train), "--validation", str(validation), "--labels"]
    command += [str(tmp_path / "labels"), "--proteins", "12", "--every", "99", "--clusters", "3", "--scored", "2"]
    command += [
        "--structures",
        "1",
        "--blocks",
        "2",
        "--records",
        str(tmp_path / "records.jsonl"),
        "--work",
        str(tmp_path / "work"),
        "--out",
        str(out),
    ]
    run(monkeypatch, *command)
    text = out.read_text()
    for part in (
        "Noise floor",
        "the residue frequencies alone come to",
        "| mi-guided:budget=2,penalty=1",
        "0.136",
        "Cost beside a pass",
        "1 + N|V|",
    ):
        assert part in text
    assert text.count("Not measured.") == 1  # no structures were given
    measured = "protein_results.py --precision float32 --train FASTA --validation FASTA --proteins 12 --tried 12 --every 99 --scored 2"
    assert f"{measured}` (" in text
    for figure in ("protein", "protein_head"):
        assert (out.parent / "figures" / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
    files = [tmp_path / "records.jsonl", *(tmp_path / "work").iterdir()]
    before = [file.read_bytes() for file in files]
    run(monkeypatch, *command, "--pdb", str(tmp_path / "pdb"), "--only", "contacts")
    assert out.read_text() == text  # one part alone writes no page
    run(monkeypatch, *command, "--pdb", str(tmp_path / "pdb"))
    assert "categorical Jacobian, APC" in out.read_text()
    assert f"{measured} --pdb PDB --structures 1 --deals 1` (" in out.read_text()
    assert all(file.read_bytes().startswith(content) for file, content in zip(files, before, strict=True))  # nothing was measured again
    assert files[1].read_bytes() == before[1]
    run(monkeypatch, "--model", backbone, "--out", str(out), "--records", str(tmp_path / "none.jsonl"))
    kept = out.read_text()
    assert "protein_results.py --precision float32` (" in kept  # nothing was measured: every part names the commit that it comes from
    assert kept.count("(Measured at commit ") == 4
