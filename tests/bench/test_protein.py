import json
from pathlib import Path

import numpy as np
import pytest

from heads import save_head
from pairmi.bench import protein
from pairmi.bench.generation import Made, generate
from pairmi.bench.ledger import Ledger
from pairmi.bench.protein import embed
from pairmi.cli import main
from pairmi.loading import load
from pairmi.mi.head import LowRankConfig, LowRankHead
from proteins import family_members, opinionated_weights, write_fasta

RULES = ["sequential", "top-k:k=4", "top-k:k=9", "eb:budget=4"]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    return opinionated_weights(tmp_path_factory.mktemp("weights") / "p.safetensors")


def test_sequences_of_the_same_families_are_nearer_than_others(weights: str) -> None:
    model = load(weights)
    texts = [text for _, text in family_members(4, 60)]
    mixed = [texts[n] for n in np.random.default_rng(0).permutation(len(texts))]
    yard = protein.yardstick(model, mixed[:80], embed(model, mixed[80:200]), k=4)
    assert yard.counts.sum() == 80
    near, far = (Made(some, 3.0, 3.0, 0.0, 0.1) for some in (mixed[160:], [text for _, text in family_members(1, 80, seed=9)]))
    base = yard.count(near.texts)
    same, other = yard.judge("near", near, base), yard.judge("far", far, base)
    assert same["jsd"] < 3 * yard.floor.high < other["jsd"]
    assert other["root"] == pytest.approx(other["jsd"] ** 0.5)
    assert other["more_low"] > 0
    assert same["more"] == 0
    few = protein.yardstick(model, mixed[:80], embed(model, mixed[80:160]), k=4)
    assert few.floor.low <= few.floor.value <= few.floor.high


def test_a_new_head_leaves_what_does_not_look_at_pairs(weights: str, tmp_path: Path) -> None:
    plain, file = load(weights), tmp_path / "records.jsonl"
    headed = load(
        weights, head=save_head(tmp_path / "h.safetensors", LowRankHead(LowRankConfig(16, 20, inner=8, forms=2, rank=2, mixer=4)), plain)
    )
    for spec, kept in (("top-k:k=4", True), ("mi-guided:budget=4", False)):
        lines = []
        for model in (plain, headed):
            generate(model, Ledger(file), spec, [6, 7], 0)
            lines.append(len(file.read_text().splitlines()))
        assert (lines[0] == lines[1]) == kept


def test_the_benchmark_from_the_command_line(weights: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reference = write_fasta(tmp_path / "natural.fasta", family_members(8, 10))
    records, figure = tmp_path / "r.jsonl", tmp_path / "f.png"
    command = ["bench", "protein", "--backbone", weights, "--reference", str(reference), "--limit", "12", "--clusters", "3"]
    command += ["--records", str(tmp_path / "ledger.jsonl"), "--rules", *RULES]
    assert main([*command, "--json", str(records), "--figure", str(figure)]) == 0
    out = capsys.readouterr().out
    assert "Noise floor, reference against its own kind: 0." in out
    assert "over 3 clusters, 12 sequences against 12" in out
    found = {record["rule"]: record for record in map(json.loads, records.read_text().splitlines())}
    assert list(found) == RULES
    assert found["sequential"]["more"] == 0
    assert found["top-k:k=9"]["passes"] == pytest.approx(2, abs=0.1)
    assert all(0 <= record["low_complexity"] <= 1 and record["distinct"] == 1 for record in found.values())
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert main(command) == 0  # from the ledger
    assert capsys.readouterr().out == out


def test_half_precision_is_the_models_own_and_has_records_of_its_own(weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, records = list[str | None](), tmp_path / "r.jsonl"
    monkeypatch.setattr("pairmi.commands.bench_protein.load", lambda name, **how: loaded.append(how["precision"]) or load(name, **how))
    command = ["bench", "protein", "--backbone", weights, "--limit", "4", "--clusters", "2", "--lengths", "8-10", "--rules", "top-k:k=8"]
    assert main([*command, "--records", str(records)]) == 0
    assert main([*command, "--records", str(records), "--precision", "bfloat16"]) == 0
    assert loaded == [None, "bfloat16"]
    lines = [file.read_text().splitlines() for file in (records, tmp_path / "r-bfloat16.jsonl")]
    assert len(lines[0]) == len(lines[1]) == 4  # three sets one by one and the rule's, each measured in its own precision


def test_without_a_reference_the_models_own_samples_are_one(weights: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["bench", "protein", "--backbone", weights, "--limit", "8", "--clusters", "2", "--rules", "sequential"]
    assert main([*command, "--lengths", "8-10"]) == 0
    assert "Reference: sequential, again" in capsys.readouterr().out
    assert main([*command, "--lengths", "many"]) == 2
    assert "--lengths many: expected a number, or a range such as 108-125" in capsys.readouterr().err


def test_too_small_a_reference_is_named(weights: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reference = write_fasta(tmp_path / "natural.fasta", family_members(2, 10))
    assert main(["bench", "protein", "--backbone", weights, "--reference", str(reference), "--limit", "11"]) == 2
    assert "natural.fasta holds 20 sequences; the reference and its noise floor need 22" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["protein", "contacts"])
def test_other_models_are_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", name, "--backbone", "xor", *(["--folder", "."] if name == "contacts" else [])]) == 2
    assert capsys.readouterr().err == f"pairmi bench: bench {name}: xor is no model of proteins\n"
