import gzip
from pathlib import Path

import pytest

from pairmi.tasks.protein.fasta import Record, open_text, parse_fasta, read_proteins
from pairmi.types import PairmiError

TEXT = ">a first cluster=F1\nMKV\nLL\n\n>empty\n>b\nACD\n"


def test_records_have_names_headers_and_joined_lines() -> None:
    records = list(parse_fasta(TEXT.splitlines()))
    assert records == [Record("a", "a first cluster=F1", "MKVLL"), Record("empty", "empty", ""), Record("b", "b", "ACD")]
    assert [record.cluster for record in records] == ["F1", "empty", "b"]
    assert next(parse_fasta([">", "ACD"])).name == "(no name)"


@pytest.mark.parametrize("packed", [False, True])
def test_files_may_be_gzipped_whatever_their_name(tmp_path: Path, packed: bool) -> None:
    file = tmp_path / "some.fasta"
    text = ">a\nMKV\n>b\nACD\n"
    file.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert [record.text for record in read_proteins(file)] == ["MKV", "ACD"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"holds no FASTA record$"),
        (">a\n>b\nACD", r", record a: it is empty$"),
        (">a\nAC.D", r", record a: '\.' at position 3 is no residue; expected a complete sequence of ACDEF.*: mend it, or leave it out$"),
        (">a\nACX", r", record a: 'X' at position 3 is any residue; expected a complete sequence of ACDEF"),
        (">a\nAC*", r", record a: '\*' at position 3 is a stop codon; cut the sequence there$"),
        (">a\nACd", r", record a: 'd' at position 3 is in lower case; write residues in capitals$"),
    ],
)
def test_what_is_no_complete_protein_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "some.fasta"
    file.write_text(text)
    with pytest.raises(PairmiError, match=message):
        read_proteins(file)


def test_residues_may_be_unknown_where_that_is_said(tmp_path: Path) -> None:
    file = tmp_path / "some.fasta"
    file.write_text(">a\nAC._D\n>b\nACX\n")
    with pytest.raises(PairmiError, match=r"record b: 'X' at position 3 is any residue; write '\.' for an unknown one"):
        read_proteins(file, blanks="._")
    file.write_text(">a\nAC._D\n")
    assert [record.text for record in read_proteins(file, blanks="._")] == ["AC._D"]


def test_what_is_too_long_for_a_model_is_named(tmp_path: Path) -> None:
    file = tmp_path / "some.fasta"
    file.write_text(">a\nACD\n>b\nACDEF\n")
    assert len(read_proteins(file, 5)) == 2
    with pytest.raises(PairmiError, match=r"some.fasta, record b: 5 residues are too many for this model; at most 4; cut the sequence"):
        read_proteins(file, 4)


def test_missing_and_damaged_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(PairmiError, match=r"^no file .*gone.fasta$"):
        read_proteins(tmp_path / "gone.fasta")
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(TEXT.encode() * 100)[:-20])
    with pytest.raises(PairmiError, match=r"cut.gz is damaged or no text"), open_text(cut) as lines:
        list(lines)


def test_without_biotite_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "biotite.sequence.io.fasta", None)
    with pytest.raises(PairmiError, match=r"FASTA: biotite is missing; pip install 'pairmi\[protein\]'"):
        next(parse_fasta([">a", "ACD"]))
