"""`pairmi design`: FASTA out, residues called as in the file."""

import re
from pathlib import Path

import pytest
import torch

from pairmi.cli import main
from pairmi.commands.design import sequential_scores
from pairmi.loading import load
from pairmi.tasks.protein.fasta import Record, read_proteins
from pairmi.tasks.protein.scaffold import read_scaffold
from structures import cut


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return cut(tmp_path / "small.pdb", A=(53, 64))


def designs(capsys: pytest.CaptureFixture[str], file: Path, *arguments: str) -> list[Record]:
    out = file.with_suffix(".fasta")
    assert main(["design", "--structure", str(file), "--out", str(out), *arguments]) == 0
    assert capsys.readouterr().out == ""
    return read_proteins(out)


def told(record: Record) -> dict[str, float]:
    return {key: float(value) for key, value in re.findall(r"(\w+)=(\S+)", record.header)}


def test_the_native_sequence_comes_first_then_the_designs_with_scores(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    native, *found = designs(capsys, file, "--fix", "A:53-55", "A:60", "--count", "5", "--seed", "2", "--temperature", "0.5")
    text = read_scaffold(file).text
    assert (native.name, native.text) == ("small-native", text)
    assert told(native)["designed"] == 8
    assert [record.name for record in found] == [f"small-{n}" for n in range(1, 6)]
    for record in found:
        about = told(record)
        assert record.text[:3] + record.text[7] == text[:3] + text[7]
        free = [3, 4, 5, 6, 8, 9, 10, 11]
        assert about["recovery"] == pytest.approx(sum(record.text[i] == text[i] for i in free) / 8)
        assert about["passes"] == about["rows"]
        assert 1 <= about["passes"] <= 8
        assert 0 < about["score"] < 5
    assert len({record.text for record in found}) > 1


def test_designs_depend_on_the_seed_not_on_the_batch(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    once, again = (designs(capsys, file, "--count", "4", "--batch", size, "--temperature", "1") for size in ("64", "1"))
    assert once == again
    assert once != designs(capsys, file, "--count", "4", "--seed", "1", "--temperature", "1")


@pytest.mark.parametrize("rule", ["sequential:by=random", "top-k:k=4", "mi-bound:mi=structural"])
@pytest.mark.parametrize("verify", [[], ["--verify"]])
def test_rules_and_verification(capsys: pytest.CaptureFixture[str], file: Path, rule: str, verify: list[str]) -> None:
    _, *found = designs(capsys, file, "--count", "2", "--rule", rule, *verify)
    assert len(found) == 2
    if rule.startswith("sequential") and not verify:
        assert told(found[0])["passes"] == 12


def test_each_chain_is_a_record(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = cut(tmp_path / "two.pdb", A=(53, 56), B=(80, 82))
    found = designs(capsys, file, "--fix", "A", "--count", "1")
    assert [record.name for record in found] == ["two-native_A", "two-native_B", "two-1_A", "two-1_B"]
    assert found[0].text == found[2].text
    assert len(designs(capsys, file, "--chain", "B", "--count", "1")[0].text) == 3


def test_without_a_file_it_goes_to_standard_output(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    assert main(["design", "--structure", str(file), "--count", "1", "--greedy"]) == 0
    assert capsys.readouterr().out.count(">") == 2


def test_a_score_is_the_mean_of_the_conditionals_one_by_one(file: Path) -> None:
    model = load("proteinmpnn", structure=file)
    tokens = model.vocab.encode(read_scaffold(file).text)
    total = 0.0
    for position in range(12):  # nothing fixed: the masked model itself, row by row
        canvas = torch.where(torch.arange(12) < position, tokens, 20)
        total -= float(model(canvas[None]).log_probs[0, position, tokens[position]])
    score = sequential_scores(model.backbone, tokens[None], torch.ones(12, dtype=torch.bool))
    assert float(score[0]) == pytest.approx(total / 12, abs=1e-5)
    some = torch.arange(12) >= 10
    canvas = torch.where(some, 20, tokens)
    first = model(canvas[None]).log_probs[0, 10, tokens[10]]
    canvas[10] = tokens[10]
    second = model(canvas[None]).log_probs[0, 11, tokens[11]]
    assert float(sequential_scores(model.backbone, tokens[None], some)[0]) == pytest.approx(-float(first + second) / 2, abs=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--count", "0"], "pairmi design: argument --count: expected a whole number of at least 1, got '0'; see 'pairmi design --help'"),
        (["--batch", "0"], "pairmi design: argument --batch: expected a whole number of at least 1, got '0'; see 'pairmi design --help'"),
        (["--fix", "A"], r"pairmi design: --fix A: every residue of .*small.pdb is fixed, nothing is left to design"),
        (["--fix", "A:1-5"], "pairmi design: 'A:1-5': small has no residue A:1-5; chain A goes from A:53 to A:64"),
        (["--fix", "B:1"], "pairmi design: 'B:1': small has no chain 'B'; it has A"),
        (["--chain", "B"], r"pairmi design: .*small.pdb has no protein chain 'B'; it has A"),
        (["--rule", "nonsense"], "pairmi design: rule 'nonsense' is unknown"),
        (["--temperature", "0"], "pairmi design: temperature=0.0: must be a number above 0"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    capsys: pytest.CaptureFixture[str], file: Path, arguments: list[str], message: str
) -> None:
    out = file.with_name("none.fasta")
    assert main(["design", "--structure", str(file), "--out", str(out), *arguments]) == 2
    error = capsys.readouterr().err
    assert re.match(message, error)
    assert error.count("\n") == 1
    assert not out.exists()
