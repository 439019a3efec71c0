"""`pairmi.map` and `pairmi map`: one sequence, many, files of them; what is interrupted goes on, what is wrong is named."""

import json
import re
from pathlib import Path

import pytest
import torch

import pairmi
from foreign import made
from pairmi.cli import main
from pairmi.mapping import Sequence, map_all
from pairmi.mi.maps import Way
from pairmi.spread.units import Incomplete
from pairmi.store import shard_about
from pairmi.tasks.protein.scaffold import read_scaffold
from pairmi.types import PairmiError
from proteins import opinionated_weights

TEXTS = {"one": "MKVLAW", "two": "ACDEFGHI", "three": "GAVLI"}


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    return opinionated_weights(tmp_path_factory.mktemp("weights") / "p.safetensors")


@pytest.fixture
def fasta(tmp_path: Path) -> Path:
    file = tmp_path / "some.fasta"
    file.write_text("".join(f">{name} more\n{text}\n" for name, text in TEXTS.items()))
    return file


def test_one_sequence_or_a_list(weights: str) -> None:
    model = pairmi.load(weights)
    one = pairmi.map(model, "MKVLAW", by="masking", apc=True, symmetrise="max", blocks=3)
    assert (one.symbols, one.names, one.title, one.unit) == (tuple("MKVLAW"), tuple("123456"), "masking, APC", "nats")
    many = pairmi.map(model, ["ACD", model.vocab.encode("MKVLAW")], by="masking", apc=True, symmetrise="max", blocks=3)
    assert torch.equal(many[1].matrix, one.matrix)
    assert many[0].matrix.shape == (3, 3)
    assert pairmi.map(model, "ACD", by="jacobian", symbols=4).rows == 3 + 3 * 4
    assert pairmi.map(model, "ACD", by="masking", symmetrise="none").directed


@pytest.mark.parametrize("name", ["esmc", "esm2"])
@pytest.mark.parametrize("by", ["mi", "jacobian", "substitution", "masking"])
def test_folders_of_the_hub(tmp_path: Path, name: str, by: str) -> None:
    model = pairmi.load(made(name, tmp_path))
    found = pairmi.map(model, "MKVLAW", by=by, deals=1)
    assert found.matrix.max() > 0
    assert torch.equal(found.matrix, found.matrix.t())


def test_dplm_is_an_esm_folder_with_a_class_of_its_own(tmp_path: Path) -> None:
    """Its config.json names a class that transformers does not have; the type is esm, and so are the weights."""
    folder = Path(made("esm2", tmp_path))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["EsmForDPLM"], "dplm_type": "dplm_esm"}))
    assert config["model_type"] == "esm"
    found = pairmi.map(pairmi.load(str(folder)), "MKVLAW", by="jacobian")
    assert torch.equal(found.matrix, pairmi.map(pairmi.load(made("esm2", tmp_path / "other")), "MKVLAW", by="jacobian").matrix)


def test_a_map_is_of_a_complete_sequence(weights: str) -> None:
    with pytest.raises(PairmiError, match=r"^sequence: position 3 is unknown; a map is of a complete sequence: fill it first"):
        pairmi.map(pairmi.load(weights), "MK.L")
    with pytest.raises(PairmiError, match=r"^sequence 1: 'Z' at position 2 is not in the alphabet"):
        pairmi.map(pairmi.load(weights), ["MK", "MZ"])
    with pytest.raises(PairmiError, match=r"^sequence: 63 positions are too many for this model; at most 62"):
        pairmi.map(pairmi.load(weights), "M" * 63)


def test_from_the_command_line(weights: str, fasta: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["map", "--backbone", weights, "--sequence", str(fasta), "--by", "jacobian", "--top", "1"]
    assert main([*command, "--save", str(tmp_path / "x.html"), str(tmp_path / "x.csv")]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[:3] == [">one", "MKVLAW", "  categorical Jacobian, norm of log-probabilities; 120 rows evaluated"]
    assert len(out) == 3 * 4
    assert (tmp_path / "x.html").is_file()
    assert len((tmp_path / "x.csv").read_text().splitlines()) == 1 + 15
    assert main([*command, "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["record"] for one in told] == list(TEXTS)
    best = pairmi.map(pairmi.load(weights), "MKVLAW", by="jacobian").strongest(1)[0]
    assert told[0]["strongest"] == [dict(zip(("i", "j", "score"), best, strict=True))]


def test_a_file_of_sequences_goes_on_where_it_stopped(
    weights: str, fasta: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "maps"
    command = ["map", "--backbone", weights, "--sequence", str(fasta), "--by", "masking", "--out", str(out)]
    assert main(command) == 0
    assert capsys.readouterr().out == f"3 maps made in {out}\n"
    first = {file.name: file.read_bytes() for file in out.iterdir()}
    assert sorted(first) == ["000000.parquet", "000001.parquet", "000002.parquet"]
    (out / "000001.parquet").unlink()
    assert main([*command, "--batch", "3"]) == 0
    assert capsys.readouterr().out == f"1 maps made in {out}\n"
    assert {file.name: file.read_bytes() for file in out.iterdir()} == first
    import pandas

    table = pandas.read_parquet(out)
    assert table.groupby("record").size().to_dict() == {"one": 15, "two": 28, "three": 10}
    found = pairmi.map(pairmi.load(weights), TEXTS["three"], by="masking").to_dataframe()
    assert table[table.record == "three"]["score"].tolist() == pytest.approx(found["score"].tolist(), rel=1e-6)
    about = shard_about(out / "000000.parquet")
    assert (about["record"], about["settings"]["by"], about["rows"]) == ("one", "masking", 4 * 7)


def test_maps_of_something_else_are_refused(weights: str, fasta: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["map", "--backbone", weights, "--sequence", str(fasta), "--by", "masking", "--out", str(tmp_path / "maps")]
    assert main(command) == 0
    assert main([*command, "--apc", "--seed", "1"]) == 2
    assert "000000.parquet was made of something else (different: apc, seed); choose another --out" in capsys.readouterr().err
    fasta.write_text(">one\nMKVLAW\n>new\nGGGG\n")
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "some.fasta, record 2 (new): " in said
    assert "(different: the sequence, two there and new here)" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("MKX", "bad.fasta, record 2 (b): 'X' at position 3 is any residue; write '.' for an unknown one"),
        ("M.K", "bad.fasta, record 2 (b): position 2 is unknown; a map is of a complete sequence: fill it first (pairmi.decode)"),
        ("M" * 63, "bad.fasta, record 2 (b): 63 positions are too many for this model; at most 62; cut the sequence"),
        ("", "bad.fasta, record 2 (b): empty; expected at least one position"),
    ],
)
def test_a_bad_record_is_named_in_one_line(weights: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str) -> None:
    (tmp_path / "bad.fasta").write_text(f">a\nMKV\n>b\n{text}\n>c\nGAV\n")
    command = ["map", "--backbone", weights, "--sequence", str(tmp_path / "bad.fasta"), "--by", "masking", "--out", str(tmp_path / "maps")]
    assert main(command) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("pairmi")]
    assert len(errors) == 1
    assert errors[0].endswith(said)
    assert main([*command, "--skip-invalid"]) == 1
    assert [shard_about(file)["record"] for file in sorted((tmp_path / "maps").iterdir())] == ["a", "c"]


def test_a_sequence_that_the_model_refuses_is_named_and_the_others_are_made(
    weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, measure = pairmi.load(weights), Way.measure

    def choosy(way: Way, backbone: pairmi.Model, sequence: torch.Tensor) -> tuple[torch.Tensor, int]:
        if len(sequence) == 8:
            raise RuntimeError("too dear")
        return measure(way, backbone, sequence)

    monkeypatch.setattr(Way, "measure", choosy)
    sequences = [Sequence(f"record {name}", name, model.vocab.encode(text)) for name, text in TEXTS.items()]
    with pytest.raises(Incomplete, match=r"1 could not be done, named above; everything else is finished"):
        map_all(model, sequences, Way("masking"), tmp_path / "maps")
    assert "map: record two: RuntimeError: too dear" in capsys.readouterr().err
    assert sorted(file.name for file in (tmp_path / "maps").iterdir()) == ["000000.parquet", "000002.parquet"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--engine", "ray"], "--engine ray writes files: give a folder with --out"),
        (["--out", "maps", "--json"], "--save and --json are for maps that are printed"),
        (["--save", "x.doc"], "--save x.doc: expected a name that ends in .npz, .parquet, .csv, .html, .png"),
    ],
)
def test_options_that_do_not_go_together(
    more: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["map", "--backbone", "protein", "--sequence", "MKV", *more]) == 2
    assert said in capsys.readouterr().err


def test_a_structure_names_its_residues(capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(__file__).parent / "data" / "1CTF_A.pdb"
    text = read_scaffold(file).text
    command = ["map", "--backbone", "proteinmpnn", "--structure", str(file), "--sequence", text, "--by", "masking", "--blocks", "2"]
    assert main([*command, "--top", "1"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[2] == f"  masking, nats; {2 * (len(text) + 1)} rows evaluated"
    assert re.fullmatch(r" +[A-Z]A:\d+ -  [A-Z]A:\d+ +0\.\d+", out[3])
    assert main([*command[:5], "--sequence", "MKV"]) == 2
    assert capsys.readouterr().err == f"pairmi map: canvas: expected {len(text)} positions, got 3\n"
