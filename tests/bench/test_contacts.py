import json
from pathlib import Path

import numpy as np
import pytest

from pairmi.bench import contacts
from pairmi.cli import main
from pairmi.tasks.protein.residues import RESIDUES
from pairmi.tasks.protein.scaffold import Structure
from proteins import opinionated_weights
from structures import helix, write_structure


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    return opinionated_weights(tmp_path_factory.mktemp("weights") / "p.safetensors")


def hairpin(length: int) -> np.ndarray:
    """Up and down again: i touches length - 1 - i."""
    half = length // 2
    return np.array([[0.0, 0, 3.4 * i] if i < half else [5.0, 0, 3.4 * (length - 1 - i)] for i in range(length)])


def test_a_map_of_the_truth_is_right_and_chance_is_the_share_of_contacts() -> None:
    structure = Structure("pin", (RESIDUES * 2)[:40], hairpin(40))
    truth = structure.contacts.astype(float)
    rng = np.random.default_rng(0)
    scores = {"truth": truth, "noise": rng.random((40, 40))}
    records = list(contacts.contact_records(structure, scores, {"truth": 5, "noise": 7}))
    at = {(r["method"], r["separation"], r["top"]): r["precision"] for r in records}
    assert at["truth", 6, "L"] == at["truth", 24, "L/2"] == 1
    assert at["noise", 6, "L"] < 0.4
    assert at["chance", 6, "L"] == pytest.approx(truth[np.triu_indices(40, 6)].mean())
    line = contacts.summary(records)[0]
    assert (line["method"], line["proteins"], line["separation"], line["precision"], line["rows"]) == ("truth", 1, ">= 6", 1, 5)


def test_the_benchmark_from_the_command_line(weights: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        write_structure(tmp_path / f"{name}.pdb", (RESIDUES * 2)[:26], helix(26))
    command = ["bench", "contacts", "--backbone", weights, "--folder", str(tmp_path), "--deals", "1", "--precision", "bfloat16"]
    assert main([*command, "--json", str(tmp_path / "r.jsonl"), "--figure", str(tmp_path / "f.png")]) == 0
    assert "| mutual information, APC   | 2        | >= 24 " in capsys.readouterr().out
    records = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert len(records) == 2 * 2 * 2 * 5
    assert {r["rows"] for r in records if r["method"].startswith("categorical")} == {26 * 20}
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")


def test_what_the_records_hold_is_not_measured_again(weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_structure(tmp_path / "a.pdb", (RESIDUES * 2)[:26], helix(26))
    command = ["bench", "contacts", "--backbone", weights, "--folder", str(tmp_path), "--records", str(tmp_path / "kept.jsonl"), "--json"]
    assert main([*command, str(tmp_path / "first.jsonl")]) == 0
    monkeypatch.setattr(contacts, "pair_scores", None)
    assert main([*command, str(tmp_path / "second.jsonl")]) == 0
    assert (tmp_path / "first.jsonl").read_text() == (tmp_path / "second.jsonl").read_text() != ""


def test_something_to_look_at_is_needed(weights: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "contacts", "--backbone", weights]) == 2
    assert "the following arguments are required: --folder" in capsys.readouterr().err
