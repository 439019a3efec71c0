"""Text on the command line: a model that brings its own code, prompts, JSON lines."""

import json
import re
from pathlib import Path

import pytest

from own_code import own_code
from pairmi.cli import main


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return ["--backbone", own_code("llada", tmp_path_factory.mktemp("cli") / "own"), "--allow-code"]


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_a_text_is_filled(model: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    out = told(capsys, "decode", *model, "--canvas", "the cat/dog<|mdm_mask|>", "--rule", "eb:block=3")
    assert out.startswith("the cat/dog")
    assert out.endswith("\t1 passes\t1 rows\n")


def test_json_lines_come_in_and_go_out(model: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "texts.jsonl"
    file.write_text('{"text": "the<|mdm_mask|>", "id": 7}\n\n{"canvas": "a <|mdm_mask|><|mdm_mask|>"}\n')
    first, second = map(json.loads, told(capsys, "decode", *model, "--canvas", str(file), "--rule", "eb", "--jsonl").splitlines())
    assert (first["record"], first["canvas"], first["tokens"][0]) == ("7", "the<|mdm_mask|>", "the")
    assert first["offsets"][-1][1] == len(first["text"])
    assert "record" not in second
    document = json.loads(told(capsys, "mi", *model, "--canvas", str(file), "--draws", "2", "--block", "2", "--json"))
    assert [one["positions"] for one in document["results"]] == [[0, 1], [2, 3]]
    assert document["results"][1]["tokens"][0] == "a"


@pytest.mark.parametrize("line", ['{"text": 3}', "{", '{"id": "x"}', '{"text": "a", "canvas": "b"}'])
def test_lines_that_are_no_records_are_named(model: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str) -> None:
    (tmp_path / "bad.jsonl").write_text(f'{{"text": "a<|mdm_mask|>"}}\n{line}\n')
    assert main(["decode", *model, "--canvas", str(tmp_path / "bad.jsonl"), "--rule", "eb"]) == 2
    assert "bad.jsonl, line 2: " in capsys.readouterr().err


def test_prompts_are_continued(model: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "prompts.txt"
    file.write_text("the cat\na dog\n")
    asked = ["--new-tokens", "3", "--rule", "top-k:k=2,block=2", "--jsonl"]
    records = [json.loads(line) for line in told(capsys, "decode", *model, "--prompt", str(file), *asked).splitlines()]
    assert [record["text"][: len(record["canvas"])] for record in records] == ["the cat", "a dog"]
    chat = json.loads(told(capsys, "decode", *model, "--prompt", "the cat", "--chat", "--stop", "<|endoftext|>", *asked))
    assert chat["text"].startswith("<|user|>the cat<|answer|>")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prompt", "a" * 100], "prompt: .* are too many for this model; at most 64 in all"),
        (["--prompt", "a", "--canvas", "b"], "expected --canvas or --prompt, and not both"),
        ([], "expected --canvas or --prompt, and not both"),
        (["--canvas", "the cat"], r"canvas: every position is given, nothing is unknown; mark unknown positions with '<\|mdm_mask\|>'"),
        (["--canvas", "the [MASK]"], r"canvas: '\[MASK\]' at position 3 is not in the alphabet"),
        (["--canvas", "the<|mdm_mask|>", "--rule", "eb:block=9"], "block=9: must be from 1 to the number of positions, here 2"),
        (["--prompt", "a", "--stop", "the cat"], "--stop: expected one symbol"),
        (["--canvas", "absent/file.jsonl"], "canvas: no file absent/file.jsonl"),
    ],
)
def test_bad_input_is_one_line(model: list[str], capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    rule = [] if "--rule" in arguments else ["--rule", "eb"]
    assert main(["decode", *model, *rule, *arguments]) == 2
    said = capsys.readouterr().err
    assert re.search(message, said), said
    assert said.count("\n") == 1


def test_code_needs_consent(model: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", *model[:2], "--canvas", "x", "--rule", "eb"]) == 2
    assert "brings its own Python code" in capsys.readouterr().err
