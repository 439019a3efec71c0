"""The section about contacts, made of small structures; an interrupted run goes on where it stopped."""

import runpy
import sys
from pathlib import Path

import pytest

from structures import cut

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "proteinmpnn_contacts.py"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", [str(EXPERIMENT), *arguments])
    runpy.run_path(str(EXPERIMENT), run_name="__main__")


def test_it_writes_its_section_and_leaves_the_rest_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, out, records = tmp_path / "pdb", tmp_path / "docs" / "maps.md", tmp_path / "records.jsonl"
    folder.mkdir()
    cut(folder / "one.pdb", A=(53, 79))
    command = ["--folder", str(folder), "--records", str(records), "--out", str(out), "--floor", "0.5"]
    run(monkeypatch, *command)
    kept = records.read_text()
    out.write_text("# Maps\n\nBefore.\n\n" + out.read_text().partition("\n\n")[2] + "\nAfter.\n")
    cut(folder / "two.pdb", A=(92, 118))
    run(monkeypatch, *command)
    text = out.read_text()
    assert records.read_text().startswith(kept)
    assert len(records.read_text().splitlines()) == 2
    assert text.startswith("# Maps\n\nBefore.\n")
    assert text.endswith("After.\n")
    assert text.count("## Contacts: ProteinMPNN on 2 structures") == 1
    for part in ("| mutual information ", "| chance ", "| distance of C-beta", "chance among its 48 nearest", ">= 24", "L/2"):
        assert part in text
    assert (out.parent / "figures" / "proteinmpnn_contacts.png").read_bytes().startswith(b"\x89PNG")


def test_a_folder_without_structures_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match=r"no PDB files in "):
        run(monkeypatch, "--folder", str(tmp_path), "--records", str(tmp_path / "r.jsonl"), "--out", str(tmp_path / "x.md"))
