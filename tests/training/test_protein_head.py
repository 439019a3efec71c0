"""From a FASTA file to a protein model with its own head, through the command line."""

import json
from pathlib import Path

import pytest
import torch

import pairmi
from foreign import made as pretrained
from pairmi.cli import main
from pairmi.loading import load
from pairmi.mi.head import LowRankConfig, LowRankHead
from pairmi.mi.probe import Probe
from pairmi.store import read_store, square
from pairmi.training.length_buckets import typical_share
from pairmi.training.states import family_name
from proteins import family_members, opinionated_weights, write_fasta
from studies.protein_corpus import masked_perplexity

SIZES = ["--inner", "16", "--forms", "4", "--rank", "4", "--mixer", "8"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with weights, sequences, labels and a head that was trained on them."""
    folder = tmp_path_factory.mktemp("protein")
    backbone = opinionated_weights(folder / "protein.safetensors")
    data = write_fasta(folder / "train.fasta", family_members(40, 3))
    labels = ["labels", "--backbone", backbone, "--data", str(data), "--out", str(folder / "labels"), "--states", "96", "--shard", "8"]
    assert main([*labels, "--floor", "0.05"]) == 0
    train = ["train", "head", "--backbone", backbone, "--labels", str(folder / "labels"), "--run", str(folder / "run"), *SIZES]
    assert main([*train, "--steps", "60", "--batch", "16", "--layers", "1", "2", "--out", str(folder / "protein-head.safetensors")]) == 0
    return folder


def test_labels_of_many_lengths_are_what_the_probe_says(made: Path) -> None:
    found, settings = read_store(made / "labels")
    model = load(str(made / "protein.safetensors"))
    assert settings["length"] is None
    assert (len(found), set(found.source)) == (96, {"uniform", "generating"})
    assert len(found.by_length()) > 3
    for _, some in found.by_length():
        alone = Probe(floor=0.05).measure(model(some.tokens[:1]), model)
        length = some.tokens.shape[1]
        torch.testing.assert_close(square(some.mi[:1], length), alone.matrix.clamp_min(0).float(), atol=1e-5, rtol=1e-4)
        assert int(some.rows[0]) == 1 + int(alone.rows) <= 1 + 20 * int(some.masked[0])


def test_no_family_is_in_two_parts(made: Path) -> None:
    found, _ = read_store(made / "labels")
    parts = [set(found.split(name).grid) for name in ("train", "validation", "test")]
    assert all(parts)
    assert len(set.union(*parts)) == sum(map(len, parts))
    assert {family_name(family) for family, _ in family_members(40, 3)} & parts[2]


def test_the_head_begins_near_its_labels_and_stays_alive(made: Path) -> None:
    found, _ = read_store(made / "labels")
    share = typical_share(found.split("train"))
    assert 0 < share < 0.1
    head = LowRankHead(LowRankConfig(16, 20))
    head.begin_at(share)
    assert float(torch.sigmoid(head.bias.detach())) == pytest.approx(share, rel=1e-4)
    log = [json.loads(line) for line in (made / "run" / "log.jsonl").read_text().splitlines()]
    nothing = float(found.split("validation").mi.sum() / (found.split("validation").mi > 0).sum())
    assert log[-1]["mae"] < 0.7 * nothing  # what saying 0 everywhere comes to


def test_the_head_is_scored_on_families_that_it_did_not_see(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["--backbone", str(made / "protein.safetensors"), "--labels", str(made / "labels"), "--json", str(made / "out.jsonl")]
    assert main(["bench", "head", *common, "--head", str(made / "protein-head.safetensors"), "--figure", str(made / "c.png")]) == 0
    records = [json.loads(line) for line in (made / "out.jsonl").read_text().splitlines()]
    score = {(r["group"], r["estimate"]): r for r in records if "r2" in r}
    assert score["all", "protein-head"]["states"] == len(read_store(made / "labels")[0].split("test"))
    assert score["all", "protein-head"]["mae"] < score["all", "protein-head"]["mean"]
    assert score["all", "probe"]["r2"] == 1
    assert {"generating", "uniform"} < {group for group, _ in score}
    assert next(r for r in records if "time_share" in r)["pass_mflop"] > 0
    assert main(["bench", "probe", *common, "--limit", "4"]) == 0
    told = capsys.readouterr().out
    assert "largest_certificate" in told
    assert "entropy_mae" not in told  # proteins have no symmetries


def test_the_package_brings_both() -> None:
    model = pairmi.load("protein")
    assert model.head is not None
    assert model.head.config.length == 0  # places are distances: any length will do
    for length in (7, 15, 30):
        found = pairmi.mutual_information(model, "M" + "." * (length - 1), head="protein")
        assert found.matrix.shape == (length, length)
        assert found.matrix[1:, 1:].triu(1).sum() > 0
    out = pairmi.decode(model, ["M...", "MK.........", "......."], "mi-bound")
    assert [len(one.text) for one in out] == [4, 11, 7]
    assert all(one.rows == one.passes for one in out)  # the head, no probes


def test_the_model_in_the_package_knows_more_than_the_frequencies_of_residues() -> None:
    unseen = [  # P83562, P15899, P81792: of validation families; their residue frequencies come to about 19
        "MRTIVFLIVSILLLSSAVLMLAEGNAASHELQEYPIEESLEEQRKCVDGSCDPYSSDAPRCCGSQICQCIFFVPCYCKYRGK",
        "MVFSLYKNIYKFVNLLKIWIINLKVIIKIIISEIIVLIGNTIHDNQKIDGITFVKNEFIISSIFYFFFLFKIIYTERKP",
        "MKCAVLFLSVIALVHIFVVEAEEEPDSDALVPQERACIPRGEICTDDCECCGCDNQCYCPPGSSLGIFKCSCAHANKYFCNRKKEKCKKA",
    ]
    assert masked_perplexity(pairmi.load("protein"), unseen, 0.5) < 15


def test_what_labels_of_proteins_need(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["labels", "--backbone", str(made / "protein.safetensors"), "--out", str(made / "none"), "--states", "4"]
    assert main(common) == 2
    assert "is a model of proteins and needs --data FILE, a FASTA file" in capsys.readouterr().err
    data = write_fasta(made / "long.fasta", [("F", "ACDE"), ("G", "A" * 63)])
    assert main([*common, "--data", str(data)]) == 2
    assert "record p1: 63 residues are too many for this model; at most 62; cut the sequence" in capsys.readouterr().err


def test_proteins_have_no_symmetries(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = ["train", "head", "--backbone", str(made / "protein.safetensors"), "--labels", str(made / "labels")]
    assert main([*train, "--run", str(made / "other"), "--augment", "2"]) == 2
    assert "--augment 2 moves states by symmetries of Sudoku" in capsys.readouterr().err


def test_a_pretrained_model_can_have_a_head_too(tmp_path: Path) -> None:
    backbone = pretrained("esm2", tmp_path)
    data = write_fasta(tmp_path / "train.fasta", family_members(60, 1))
    labels = ["labels", "--backbone", backbone, "--data", str(data), "--out", str(tmp_path / "labels"), "--states", "72", "--shard", "24"]
    assert main([*labels, "--floor", "0.5"]) == 0
    train = ["train", "head", "--backbone", backbone, "--labels", str(tmp_path / "labels"), "--run", str(tmp_path / "run"), *SIZES]
    assert main([*train, "--steps", "2", "--batch", "4", "--out", str(tmp_path / "h.safetensors")]) == 0
    model = load(backbone, head=str(tmp_path / "h.safetensors"))
    assert model.backbone.layers == (3,)  # the last, unless told otherwise
    assert pairmi.decode(model, "MK....", "mi-guided:mi=head").rows > 0
