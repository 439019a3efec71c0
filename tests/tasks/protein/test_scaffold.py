from pathlib import Path

import numpy as np
import pytest

from pairmi.tasks.protein.scaffold import read_scaffold, read_structure
from pairmi.types import PairmiError
from structures import REAL, cut, helix, without, write_structure


def test_a_real_chain_comes_back_whole() -> None:
    found, structure = read_scaffold(REAL), read_structure(REAL)
    assert (found.name, found.text) == ("1CTF_A", structure.text)
    assert found.atoms.shape == (68, 4, 3)
    assert np.linalg.norm(found.atoms[:, 1] - found.atoms[:, 0], axis=1).mean() == pytest.approx(1.46, abs=0.02)  # N-CA
    assert np.linalg.norm(found.atoms[:-1, 2] - found.atoms[1:, 0], axis=1).mean() == pytest.approx(1.33, abs=0.02)  # C-N of the next
    assert (found.contacts == structure.contacts).all()
    assert (str(found.residues[0]), str(found.residues[67])) == ("A:53", "A:120")
    assert found.index.tolist() == list(range(68))
    assert set(found.chains.tolist()) == {0}


def test_several_chains_are_taken_in_order_or_as_asked(tmp_path: Path) -> None:
    file = cut(tmp_path / "x.pdb", A=(53, 57), B=(80, 82))
    both = read_scaffold(file)
    assert both.chain_names == ["A", "B"]
    assert both.chains.tolist() == [0] * 5 + [1] * 3
    assert both.index.tolist() == [0, 1, 2, 3, 4, 0, 1, 2]
    assert both.split(both.text) == {"A": "EFDVI", "B": both.text[5:]}
    assert read_scaffold(file, "B").text == both.text[5:]
    assert read_scaffold(file, "B, A").text == both.text[5:] + both.text[:5]
    with pytest.raises(PairmiError, match=r"x.pdb has no protein chain 'C'; it has A, B"):
        read_scaffold(file, "A,C")


def test_gaps_in_the_numbering_count_and_insertions_take_a_place_each(tmp_path: Path) -> None:
    file = cut(tmp_path / "x.pdb", A=(53, 60))
    text = file.read_text()
    file.write_text("".join(line for line in text.splitlines(keepends=True) if line[22:26] not in ("  55", "  56")))
    assert read_scaffold(file).index.tolist() == [0, 1, 4, 5, 6, 7]
    inserted = "".join(line.replace("A  58 ", "A  57A") for line in text.splitlines(keepends=True))
    file.write_text(inserted)
    found = read_scaffold(file)
    assert [str(residue) for residue in found.residues][3:7] == ["A:56", "A:57", "A:57A", "A:59"]
    assert found.index.tolist() == [0, 1, 2, 3, 4, 5, 7, 8]
    assert found.find("A:57A") == [5]
    assert found.find("A:57-59") == [4, 5, 6]
    assert found.find("A:56-57") == [3, 4, 5]  # the insertions of the last number belong to the span
    assert found.find("A:57") == [4]


def test_positions_are_called_as_in_the_file(tmp_path: Path) -> None:
    found = read_scaffold(cut(tmp_path / "x.pdb", A=(53, 57), B=(80, 82)))
    assert found.find("A:53-54,B:82") == [0, 1, 7]
    assert found.find("B") == [5, 6, 7]
    assert read_scaffold(REAL).find("53-55") == [0, 1, 2]  # one chain needs no name
    for bad, message in (
        ("C:1", "'C:1': x has no chain 'C'; it has A, B"),
        ("53", "'53': x has no chain '53'; it has A, B"),
        ("A:x", r"'A:x': 'A:x' names no residues; expected chain:number or chain:first-last, such as A:1-10"),
        ("A:1-10", r"'A:1-10': x has no residue A:1-10; chain A goes from A:53 to A:57"),
    ):
        with pytest.raises(PairmiError, match=message):
            found.find(bad)


def test_water_and_ligands_are_passed_over_and_selenomethionine_is_methionine(tmp_path: Path) -> None:
    file = cut(tmp_path / "x.pdb", A=(53, 55))
    lines = file.read_text().replace("GLU A  53", "MSE A  53").splitlines()
    water = "HETATM 9000  O   HOH A 201      10.000  10.000  10.000  1.00 10.00           O"
    calcium = "HETATM 9001 CA    CA A 202      12.000  10.000  10.000  1.00 10.00          CA"
    file.write_text("\n".join([*lines[:-1], water, calcium, "END"]))
    assert read_scaffold(file).text == "MFD"


def test_bad_files_are_named_with_the_record_and_a_remedy(tmp_path: Path) -> None:
    file = without(cut(tmp_path / "x.pdb", A=(53, 57)), " O ", "ASP A  55")
    with pytest.raises(PairmiError, match=r"x.pdb: residue A:55 \(D\) lacks O; model it, or remove the residue"):
        read_scaffold(file)
    file = cut(tmp_path / "y.pdb", A=(53, 57))
    file.write_text(file.read_text().replace("ASP A  55", "SEP A  55"))
    with pytest.raises(PairmiError, match=r"y.pdb: residue A:55 is SEP, no standard one; rename it to what it stands for, or remove it"):
        read_scaffold(file)
    with pytest.raises(PairmiError, match=r"z.pdb holds no backbone atoms: expected N, CA, C, O of every residue; give a full-atom file"):
        read_scaffold(write_structure(tmp_path / "z.pdb", "MGA", helix(3)))
    file = cut(tmp_path / "twice.pdb", A=(53, 55))
    file.write_text(file.read_text().replace("PHE A  54", "PHE A  53"))
    with pytest.raises(PairmiError, match=r"twice.pdb: there are two residues A:53, GLU and PHE; keep one of them"):
        read_scaffold(file)
    again = cut(tmp_path / "again.pdb", A=(53, 55)).read_text()
    (tmp_path / "again.pdb").write_text(again.replace("END\n", "") + again)  # the same residues once more, after others
    with pytest.raises(PairmiError, match=r"again.pdb: there are two residues A:53; keep one of them"):
        read_scaffold(tmp_path / "again.pdb")
    atoms = cut(tmp_path / "nmr.pdb", A=(53, 55)).read_text().removesuffix("END\n")
    (tmp_path / "nmr.pdb").write_text("".join(f"MODEL     {n:4d}\n{atoms}ENDMDL\n" for n in (1, 2)) + "END\n")
    with pytest.raises(PairmiError, match=r"nmr.pdb holds 2 models \(MODEL records\), expected one; keep the one to design for"):
        read_scaffold(tmp_path / "nmr.pdb")


def test_files_that_hold_no_protein(tmp_path: Path) -> None:
    with pytest.raises(PairmiError, match=r"no file .*none.pdb; expected a PDB file"):
        read_scaffold(tmp_path / "none.pdb")
    (tmp_path / "empty.pdb").touch()
    with pytest.raises(PairmiError, match=r"empty.pdb is empty; expected a PDB file"):
        read_scaffold(tmp_path / "empty.pdb")
    (tmp_path / "text.pdb").write_text("no structure at all\n")
    with pytest.raises(PairmiError, match=r"text.pdb (is no PDB file|holds no residue of a protein)"):
        read_scaffold(tmp_path / "text.pdb")
    water = write_structure(tmp_path / "water.pdb", "A", helix(1))
    water.write_text(water.read_text().replace("ALA", "HOH"))
    with pytest.raises(PairmiError, match=r"water.pdb holds no residue of a protein"):
        read_scaffold(water)
    (tmp_path / "bytes.pdb").write_bytes(b"ATOM  \xff\xfe\x00")
    with pytest.raises(PairmiError, match=r"bytes.pdb is no PDB file"):
        read_scaffold(tmp_path / "bytes.pdb")
