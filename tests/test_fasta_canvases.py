"""`pairmi mi` and `pairmi decode` on FASTA files."""

import gzip
import io
import json
from pathlib import Path

import pytest

from pairmi.cli import main
from proteins import opinionated_weights

LINES = [">one first of all", "MK..V", "", ">two", "..", "AC", ">three", "MKLV..", ">four", "....."]
BAD = [">stop", "MK*..", ">low", "mk..", ">gone", ">any", "MX..", ">long", "." * 63, ">full", "MKV", ">good", "M..K"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return opinionated_weights(tmp_path_factory.mktemp("weights") / "p.safetensors")


def decoded(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[list[dict], str]:
    assert main(["decode", "--rule", "top-k:k=2", "--json", *arguments]) == int("--skip-invalid" in arguments)
    out, error = capsys.readouterr()
    return json.loads(out)["results"], error


@pytest.mark.parametrize("packed", [False, True])
def test_records_come_out_by_name_in_order_with_a_bar(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], packed: bool) -> None:
    text = "\n".join(LINES).encode()
    file = tmp_path / "some.fasta"
    file.write_bytes(gzip.compress(text) if packed else text)
    results, error = decoded(capsys, "--backbone", model, "--canvas", str(file), "--batch", "2")
    assert [(result["record"], result["canvas"]) for result in results] == [
        ("one", "MK..V"), ("two", "..AC"), ("three", "MKLV.."), ("four", "....."),
    ]  # fmt: skip
    assert all(len(result["text"]) == len(result["canvas"]) and "." not in result["text"] for result in results)
    assert "decode: 4canvas" in error
    again, _ = decoded(capsys, "--backbone", model, "--canvas", str(file), "--batch", "256")
    assert again == results


def test_fasta_gives_fasta(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "some.fasta"
    file.write_text("\n".join(LINES))
    assert main(["decode", "--backbone", model, "--canvas", str(file), "--rule", "sequential"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith(">")] == [
        ">one passes=2 rows=2 probe_rows=0", ">two passes=2 rows=2 probe_rows=0",
        ">three passes=2 rows=2 probe_rows=0", ">four passes=5 rows=5 probe_rows=0",
    ]  # fmt: skip
    assert len(lines) == 8


def test_standard_input_may_be_fasta(model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(LINES)))
    results, _ = decoded(capsys, "--backbone", model, "--canvas", "-")
    assert [result["record"] for result in results] == ["one", "two", "three", "four"]


def test_bad_records_are_named_and_can_be_skipped(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.fa"
    file.write_text("\n".join(BAD))
    assert main(["decode", "--backbone", model, "--canvas", str(file)]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert f"pairmi decode: {file}, record 1 (stop): '*' at position 3 is a stop codon; cut the sequence there\n" in error
    results, error = decoded(capsys, "--backbone", model, "--canvas", str(file), "--skip-invalid")
    assert [result["record"] for result in results] == ["good"]
    for part in (
        "record 1 (stop): '*' at position 3 is a stop codon",
        "record 2 (low): 'm' at position 1 is in lower case",
        "record 3 (gone): empty; expected at least one position\n",
        "record 4 (any): 'X' at position 2 is any residue",
        "record 5 (long): 63 positions are too many for this model; at most 62; cut the sequence",
        "record 6 (full): every position is given, nothing is unknown",
    ):
        assert f"skipped {file}, {part}" in error


def test_mi_reads_fasta_too(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "some.fasta"
    file.write_text("\n".join([*LINES, ">bad", "MK*.."]))
    assert main(["mi", "--backbone", model, "--canvas", str(file), "--skip-invalid", "--json", "--top", "1"]) == 1
    out, error = capsys.readouterr()
    document = json.loads(out)
    assert [result["record"] for result in document["results"]] == ["one", "two", "three", "four"]
    assert document["results"][0]["strongest"][0] | {"nats": 0} == {"i": 2, "j": 3, "nats": 0}
    assert "skipped" in error
    assert main(["mi", "--backbone", model, "--canvas", str(file), "--skip-invalid", "--top", "1"]) == 1
    assert capsys.readouterr().out.startswith(">one\nMK..V\n  ")


def test_thousands_of_records_of_many_lengths_in_one_run(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lengths = [4 + (7 * n) % 9 for n in range(2000)]
    file = tmp_path / "many.fasta"
    file.write_text("".join(f">r{n}\nMK{'.' * (length - 2)}\n" for n, length in enumerate(lengths)))
    assert main(["decode", "--backbone", model, "--canvas", str(file), "--rule", "top-k:k=16", "--batch", "128"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[::2]] == [f">r{n}" for n in range(2000)]
    assert [len(text) for text in lines[1::2]] == lengths
