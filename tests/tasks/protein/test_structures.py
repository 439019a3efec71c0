from pathlib import Path

import numpy as np
import pytest

from pairmi.tasks.protein.scaffold import read_structure, read_structures
from pairmi.types import PairmiError
from structures import helix, write_structure


def test_residues_and_their_places_come_back(tmp_path: Path) -> None:
    text, places = "MKGAVLW", helix(7)
    found = read_structure(write_structure(tmp_path / "one.pdb", text, places))
    assert (found.name, found.text) == ("one", text)
    np.testing.assert_allclose(found.places, places, atol=2e-3)


def test_contacts_are_closer_than_8_angstrom(tmp_path: Path) -> None:
    places = np.array([[0.0, 0, 0], [7.9, 0, 0], [16.0, 0, 0]])
    contacts = read_structure(write_structure(tmp_path / "a.pdb", "AAA", places)).contacts
    assert contacts.tolist() == [[True, True, False], [True, True, False], [False, False, True]]


def test_a_folder_is_read_by_name(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write_structure(tmp_path / f"{name}.pdb", "AC", helix(2))
    assert [structure.name for structure in read_structures(tmp_path)] == ["a", "b"]
    with pytest.raises(PairmiError, match=r"a.pdb: 2 residues are too many for this model; at most 1; take the file away"):
        read_structures(tmp_path, 1)


def test_what_holds_no_protein_is_named(tmp_path: Path) -> None:
    with pytest.raises(PairmiError, match=r"no PDB files in .*; expected \*.pdb"):
        read_structures(tmp_path)
    (tmp_path / "text.pdb").write_text("nothing here\n")
    with pytest.raises(PairmiError, match=r"text.pdb is no PDB file|text.pdb holds no residue"):
        read_structure(tmp_path / "text.pdb")
    water = write_structure(tmp_path / "water.pdb", "A", helix(1))
    water.write_text(water.read_text().replace("ALA", "HOH"))
    with pytest.raises(PairmiError, match=r"water.pdb holds no residue of a protein"):
        read_structure(water)


def test_without_biotite_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "biotite.structure.io.pdb", None)
    with pytest.raises(PairmiError, match=r"PDB: biotite is missing; pip install 'pairmi\[protein\]'"):
        read_structure(tmp_path / "a.pdb")
