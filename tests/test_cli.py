import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import pairmi
from pairmi.cli import main
from pairmi.commands.document import dumped
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import parameters

EMPTY = "." * 16
HALF = "1234" + "." * 12
FULL = "1234341221434321"


def strict(text: str) -> Any:
    """One JSON document, without the infinities and NaN that Python would accept."""
    assert text.endswith("\n")
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def done(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    out, error = capsys.readouterr()
    assert error == ""
    return out


def decode(*arguments: str) -> tuple[str, ...]:
    return ("decode", "--backbone", "sudoku4", *arguments)


@pytest.mark.parametrize("form", ["joint", "kl", "entropy"])
def test_mi_as_json(capsys: pytest.CaptureFixture[str], form: str) -> None:
    document = strict(done(capsys, "mi", "--backbone", "sudoku4", "--canvas", HALF, "--form", form, "--json", "--top", "3"))
    (result,) = document["results"]
    assert document["backbone"] == "sudoku4"
    assert result["canvas"] == HALF
    assert len(result["strongest"]) == 3
    assert len(result["matrix"]) == len(result["bound"]) == 16
    assert result["strongest"][0]["nats"] == pytest.approx(max(max(row) for row in result["matrix"]))


def test_a_head_that_is_named_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    out = done(capsys, "mi", "--canvas", 81 * ".", "--head", "sudoku", "--top", "1")
    assert "  1 rows evaluated; an estimate" in out
    assert out.endswith(" nats\n")
    document = strict(done(capsys, "mi", "--canvas", 81 * ".", "--head", "sudoku", "--top", "1", "--json"))
    assert document["mi"] == "head"


def test_a_map_where_no_pair_scores_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert done(capsys, "map", "--backbone", "independent", "--sequence", "12312").endswith(
        "rows evaluated\n  nothing depends on anything\n"
    )
    assert done(capsys, "map", "--backbone", "independent", "--sequence", "12312", "--top", "0").endswith("rows evaluated\n")


def test_where_json_has_no_number_it_says_null(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    document = strict(done(capsys, "mi", "--backbone", "sudoku4", "--canvas", EMPTY, "--draws", "1", "--json"))
    assert document["results"][0]["error"][0][1] is None  # one draw tells no error
    command = ("price", "--backbone", "sudoku4", "--canvas", EMPTY, "--sequences", "1", "--rules", "eb", "top-k:k=4", "--json")
    first, second = strict(done(capsys, *command))["results"]
    assert first["interval"] == [0.0, None]
    assert (first["against"], second["against"]["rule"]) == (None, "eb")
    assert second["against"]["nats"] == pytest.approx(second["nats"] - first["nats"])
    assert len(second["against"]["interval"]) == 2
    file = tmp_path / "records.jsonl"
    assert main(["bench", "exact", "--worlds", "xor", "--rules", "top-k:k=3,by=confidence", "--json", str(file)]) == 0
    assert strict(file.read_text())["kl"] == pytest.approx(0.693, abs=1e-3)
    assert dumped({"a": (1.5, float("nan"), [float("-inf")])}) == '{"a": [1.5, null, [null]]}'


def test_mi_for_people_with_a_figure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    figure = tmp_path / "map.png"
    out = done(capsys, "mi", "--backbone", "sudoku4", "--canvas", HALF, "--top", "2", "--figure", str(figure))
    lines = out.splitlines()
    assert lines[0] == HALF
    assert "rows evaluated; every entry within" in lines[1]
    assert len(lines) == 4
    assert all(" - r" in line and line.endswith(" nats") for line in lines[2:])
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_decode_as_json_with_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    document = strict(done(capsys, *decode("--canvas", HALF, "--json", "--trace", "--seed", "3", "--rule", "eb:budget=0")))
    assert {key: document[key] for key in ("backbone", "rule", "seed", "temperature")} == {
        "backbone": "sudoku4", "rule": "eb:budget=0", "seed": 3, "temperature": 1.0,
    }  # fmt: skip
    (result,) = document["results"]
    assert result["text"].startswith("1234")
    assert len(result["steps"]) == result["passes"] == result["rows"]
    assert set(result["steps"][0]) == {"filled", "waiting", "text"}
    assert "steps" not in strict(done(capsys, *decode("--canvas", HALF, "--json")))["results"][0]


def test_decode_for_people_with_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    lines = done(capsys, *decode("--canvas", EMPTY, "--trace", "--greedy", "--verify", "--accept", "0.5")).splitlines()
    text, passes, rows, *probes, verdict = lines[0].split("\t")
    assert len(text) == 16
    assert passes.endswith(" passes")
    assert rows.endswith(" rows")
    assert all(part.endswith(" for probing") for part in probes)
    assert verdict == "valid"
    assert lines[1].startswith("  pass 1: r1c1=")
    assert any(line.startswith("    r") and " waits: " in line for line in lines)


@pytest.mark.parametrize("batch", ["1", "2", "256"])
def test_decode_reads_standard_input_and_keeps_the_order(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, batch: str
) -> None:
    lines = [HALF, "# a comment", "", "11" + "." * 14, EMPTY, FULL, "." * 12 + "4321", "12", "short"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    assert main(decode("--canvas", "-", "--skip-invalid", "--json", "--batch", batch)) == 1
    out, error = capsys.readouterr()
    document = strict(out)
    assert [result["canvas"] for result in document["results"]] == [HALF, EMPTY, "." * 12 + "4321"]
    # a canvas draws from the stream of its place in the input, whatever was skipped, whatever the batch
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join([HALF, HALF, EMPTY])))
    assert strict(done(capsys, *decode("--canvas", "-", "--json")))["results"][2]["text"] == document["results"][1]["text"]
    assert error.splitlines() == [
        "pairmi decode: skipped standard input, line 4: contradiction: no sequence of this world fits the given positions",
        "pairmi decode: skipped standard input, line 6: every position is given, nothing is unknown; "
        "mark unknown positions with '.', or with token id 4",
        "pairmi decode: skipped standard input, line 8: expected 16 positions, got 2",
        "pairmi decode: skipped standard input, line 9: 's' at position 1 is not in the alphabet (1234; unknown: . _)",
        "pairmi decode: 4 canvases were skipped, named above; all else is finished",
    ]


def test_decode_of_nothing_valid_is_still_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(decode("--canvas", "12", "--skip-invalid", "--json")) == 1
    assert strict(capsys.readouterr().out)["results"] == []


def test_canvases_from_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "canvases"
    file.write_text(f"{HALF}\n{EMPTY}\n")
    assert len(done(capsys, *decode("--canvas", str(file))).splitlines()) == 2


def test_rules_lists_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    rows = strict(done(capsys, "rules", "--json"))
    assert [row["name"] for row in rows] == list(CATALOGUE)
    assert all(
        row["parameters"] == parameters(row["name"]) | {"commit": "all", "draw": "marginal"} and row["about"] and row["reference"]
        for row in rows
    )
    text = done(capsys, "rules")
    assert all(f"{name}:" in text for name in CATALOGUE)
    assert "exact worlds: sudoku4, " in text


def test_data_makes_puzzles(capsys: pytest.CaptureFixture[str]) -> None:
    puzzles = done(capsys, "data", "sudoku", "--count", "2", "--givens", "30-34").splitlines()
    assert [len(puzzle) for puzzle in puzzles] == [81, 81]
    table = done(capsys, "data", "sudoku", "--count", "2", "--givens", "30-34", "--csv").splitlines()
    assert table[0] == "puzzle,solution,givens,difficulty,technique"
    assert [line.split(",")[0] for line in table[1:]] == puzzles
    graded = done(capsys, "data", "sudoku", "--count", "4", "--minimal", "--csv").splitlines()
    assert [line.split(",")[-1] for line in graded[1:]] == ["singles", "locked", "subsets", "beyond"]
    assert all(22 <= int(line.split(",")[2]) <= 28 for line in graded[1:])


def test_bench_exact_prints_a_table_and_writes_records(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["bench", "exact", "--worlds", "xor", "--rules", "sequential", "top-k:k=3", "--verify"]
    assert main([*arguments, "--json", str(tmp_path / "r.jsonl"), "--figure", str(tmp_path / "f.png")]) == 0
    assert "| xor   | sequential | False    | 3 " in capsys.readouterr().out
    records = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert [(record["rule"], record["verified"]) for record in records] == [
        ("sequential", False), ("sequential", True), ("top-k:k=3", False), ("top-k:k=3", True),
    ]  # fmt: skip
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")


def test_bench_exact_shows_what_a_rule_loses_that_has_no_setting_without_loss(capsys: pytest.CaptureFixture[str]) -> None:
    """What the README says of three XORed bits."""
    assert main(["bench", "exact", "--worlds", "xor", "--rules", "sequential", "mi-bound", "independent-set", "demask"]) == 0
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines() if line.startswith("| xor")]
    assert [(row[1], *row[-2:]) for row in rows] == [
        ("sequential", "0", "1"), ("mi-bound", "0.6931", "0.5"), ("independent-set", "0.6931", "0.5"), ("demask", "0.6931", "0.5"),
    ]  # fmt: skip


def test_bench_speed_prints_every_rule(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"rule": "eb", "beside_ms": 1.0, "pass_ms": 2.0, "share": 0.5}
    monkeypatch.setattr("pairmi.bench.speed.selection_times", lambda batch: [record | {"batch": batch}])
    assert main(["bench", "speed", "--limit", "3"]) == 0
    assert "| eb   | 1         | 2       | 0.5   |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (decode("--canvas", "12"), "decode: canvas: expected 16 positions, got 2"),
        (decode("--canvas", "12", "--json"), "decode: canvas: expected 16 positions, got 2"),
        (decode("--canvas", "5" + EMPTY[1:]), "decode: canvas: '5' at position 1 is not in the alphabet (1234; unknown: . _)"),
        (decode("--canvas", "x" * 400), "decode: canvas: 'x' at position 1 is not in the alphabet (1234; unknown: . _)"),
        (
            decode("--canvas", FULL),
            "decode: canvas: every position is given, nothing is unknown; mark unknown positions with '.', or with token id 4",
        ),
        (decode("--canvas", "11" + EMPTY[2:]), "decode: canvas: contradiction: no sequence of this world fits the given positions"),
        (decode("--canvas", "no/such"), "decode: canvas: no file no/such"),
        (decode("--canvas", "such.txt"), "decode: canvas: no file such.txt"),
        (decode("--canvas", "such.csv"), "decode: canvas: no file such.csv"),
        (decode("--canvas", "/"), "decode: canvas: / is a folder, expected a canvas or a file of canvases; name a file in it"),
        (decode("--canvas", EMPTY, "--json", "--jsonl"), "decode: expected --json or --jsonl, and not both"),
        (decode("--canvas", os.devnull), None),
        (decode("--canvas", EMPTY, "--rule", "mi-gided"), "decode: rule 'mi-gided' is unknown; did you mean 'mi-guided'?"),
        (decode("--canvas", EMPTY, "--rule", "eb:budget=-1"), "decode: EB(budget=-1.0): budget must be >= 0 nats"),
        (
            decode("--canvas", EMPTY, "--rule", "mi-bound:mi=attention", "--json"),
            "decode: canvas: Attended: the backbone reports no attention; load it with attention=True, or choose another mi",
        ),
        (
            decode("--canvas", EMPTY, "--batch", "0"),
            "decode: argument --batch: expected a whole number of at least 1, got '0'; see 'pairmi decode --help'",
        ),
        (
            decode("--canvas", EMPTY, "--temperature", "0"),
            "decode: temperature=0.0: must be a number above 0; for the likeliest symbol use greedy",
        ),
        (
            decode("--canvas", EMPTY, "--accept", "2", "--json"),
            "decode: argument --accept: expected a number between 0 and 1, got '2'; see 'pairmi decode --help'",
        ),
        (("decode", "--backbone", "sudoku5", "--canvas", EMPTY), None),
        (
            ("mi", "--backbone", "sudoku4", "--canvas", EMPTY, "--floor", "-1"),
            "mi: argument --floor: expected a number of at least 0, got '-1'; see 'pairmi mi --help'",
        ),
        (("mi", "--backbone", "sudoku4", "--canvas", "12", "--json"), "mi: canvas: expected 16 positions, got 2"),
        (("data", "sudoku", "--givens", "many"), "data: --givens many: expected a number, or a range such as 25-29"),
        (
            ("data", "sudoku", "--givens", "27", "--minimal"),
            "data: --givens 27: minimal puzzles have 22-28 givens of their own; leave out --givens or --minimal",
        ),
        (("data",), "data: the following arguments are required: TASK; see 'pairmi data --help'"),
        (
            ("mi", "--canvas", 81 * ".", "--mi", "probe", "--head", "sudoku"),
            "mi: --mi probe reads no head, got --head sudoku; leave out one of them",
        ),
        (
            ("mi", "--canvas", 81 * ".", "--mi", "head", "--form", "tv", "--draws", "2"),
            "mi: a head estimates from one pass; --form, --draws are for probing: leave them out, or choose --mi probe",
        ),
        (
            ("mi", "--canvas", 81 * ".", "--head", "sudoku", "--floor", "0.1"),
            "mi: a head estimates from one pass; --floor are for probing: leave them out, or choose --mi probe",
        ),
        (("bench", "exact", "--worlds", "mars"), None),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_exit_2(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str | None) -> None:
    assert main(arguments) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.count("\n") == 1
    assert error.startswith(f"pairmi {arguments[0]}: ")
    if message is not None:
        assert error == f"pairmi {message}\n"


def test_an_empty_input_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n# nothing\n"))
    assert main(decode("--canvas", "-")) == 2
    assert capsys.readouterr() == ("", "pairmi decode: canvas: standard input holds no canvas\n")


def test_an_unknown_world_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "exact", "--worlds", "mars"]) == 2
    assert capsys.readouterr().err.startswith("pairmi bench: bench exact: unknown world 'mars'; known: sudoku4, ")


def test_bare_pairmi_shows_help_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    out = done(capsys)
    assert "examples:\n  pairmi mi " in out
    assert done(capsys, "--version") == f"pairmi {pairmi.__version__}\n"


@pytest.mark.parametrize(
    ("command", "has", "not_has"),
    [
        (("bench", "exact"), "--worlds", "--labels"),
        (("bench", "head"), "--labels", "--worlds"),
        (("train", "head"), "--hops", "--units"),
        (("train", "tables"), "--units", "--hops"),
        (("mi",), "counted from 1", "--labels"),
    ],
)
def test_each_command_has_its_own_options(capsys: pytest.CaptureFixture[str], command: tuple[str, ...], has: str, not_has: str) -> None:
    out = done(capsys, *command, "--help")
    assert has in out
    assert not_has not in out


@pytest.mark.parametrize("after", [0.15, 0.5, 1.0])
def test_ctrl_c_in_the_first_second_is_one_line(after: float) -> None:
    command = (
        "from pairmi.cli import main; print('up', flush=True); import sys; sys.exit(main(['plan', '--states', '99', '--sample', '64']))"
    )
    with subprocess.Popen([sys.executable, "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        time.sleep(after)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    lines = [line for line in re.split(r"[\r\n]", error) if line.strip() and not line.startswith("plan:")]
    assert len(lines) == 1
    assert re.match(r"pairmi( plan)?: interrupted", lines[0])


@pytest.mark.parametrize("name", ["folder", "nowhere/map.png", "map.xyz", "map", ""])
def test_a_figure_that_cannot_be_drawn_is_refused_before_the_work(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pairmi.commands.mi.run", lambda options: pytest.fail("began"))
    assert main(["mi", "--backbone", "sudoku4", "--canvas", HALF, "--figure", name]) == 2
    assert capsys.readouterr().err.startswith("pairmi mi: argument --figure: ")
    assert [file.name for file in tmp_path.rglob("*")] == ["folder"]


def test_an_interruption_is_exit_130(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pairmi.commands.rules.run", interrupted)
    assert main(["rules"]) == 130
    assert capsys.readouterr().err == "pairmi rules: interrupted; what was finished is kept\n"


def test_a_reader_that_has_seen_enough_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(options: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("pairmi.commands.rules.run", broken)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert main(["rules"]) == 0


def test_files_that_cannot_be_read_or_written_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    strange = tmp_path / "strange.txt"
    strange.write_bytes(b"\xff\xfe1...")
    assert main(decode("--canvas", str(strange))) == 2
    assert capsys.readouterr().err.startswith(f"pairmi decode: {strange} is damaged or no text")
    assert main(["mi", "--backbone", "sudoku4", "--canvas", HALF, "--figure", str(tmp_path / "strange.txt" / "map.png")]) == 2
    assert "strange.txt" in capsys.readouterr().err


def test_train_hands_its_options_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen, threads = [], []
    monkeypatch.setattr("pairmi.training.run.train_tables", seen.append)
    monkeypatch.setattr("torch.set_num_threads", threads.append)
    assert main(["train", "tables", "--labels", str(tmp_path), "--run", str(tmp_path), "--steps", "7", "--threads", "3"]) == 0
    assert (seen[0].steps, seen[0].run, threads) == (7, tmp_path, [3])


def test_help_needs_no_torch() -> None:
    code = "import sys; from pairmi import cli; cli.build_parser().format_help(); print('torch' in sys.modules)"
    start = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert start.stdout == "False\n"
    shown = subprocess.run([Path(sys.executable).with_name("pairmi"), "--help"], capture_output=True, text=True, timeout=60, check=True)
    assert "decode" in shown.stdout


def test_a_byte_order_mark_and_our_own_csv_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "marked.txt"
    file.write_bytes(b"\xef\xbb\xbf" + HALF.encode() + b"\n")
    assert strict(done(capsys, *decode("--canvas", str(file), "--json")))["results"][0]["canvas"] == HALF
    assert main(["data", "sudoku", "--count", "2", "--csv", "--seed", "1"]) == 0
    listed = capsys.readouterr().out
    (tmp_path / "puzzles.csv").write_text(listed)
    lines = listed.splitlines()[1:]
    found = strict(done(capsys, "mi", "--canvas", str(tmp_path / "puzzles.csv"), "--mi", "head", "--json", "--top", "1"))["results"]
    assert [one["canvas"] for one in found] == [line.split(",")[0] for line in lines]


def test_an_interrupted_document_is_still_one(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between two results: what is there is whole JSON, and the exit code says that it is not all."""
    from pairmi.commands import decode as command

    filled = command.Filling._filled

    def once(self: object, canvases: list) -> list:
        monkeypatch.setattr(command.Filling, "_filled", lambda self, canvases: (_ for _ in ()).throw(KeyboardInterrupt))
        return filled(self, canvases)

    monkeypatch.setattr(command.Filling, "_filled", once)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{HALF}\n{EMPTY}\n"))
    assert main(decode("--canvas", "-", "--json", "--batch", "1")) == 130
    out, error = capsys.readouterr()
    assert [one["canvas"] for one in strict(out)["results"]] == [HALF]
    assert error.endswith("interrupted; what was finished is kept\n")


def test_an_interrupted_document_of_mi_is_one_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from pairmi.commands import mi as command

    measured = command._measured

    def once(*given: object) -> object:
        monkeypatch.setattr(command, "_measured", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
        return measured(*given)

    monkeypatch.setattr(command, "_measured", once)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{HALF}\n{EMPTY}\n"))
    assert main(["mi", "--backbone", "sudoku4", "--canvas", "-", "--json"]) == 130
    assert [one["canvas"] for one in strict(capsys.readouterr().out)["results"]] == [HALF]


def test_decode_says_what_became_of_a_sudoku(capsys: pytest.CaptureFixture[str]) -> None:
    puzzle = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"
    assert done(capsys, "decode", "--canvas", puzzle, "--greedy", "--rule", "mi-guided").rstrip().endswith("\tsolved")
    crowded = done(capsys, *decode("--canvas", EMPTY, "--rule", "top-k:k=16", "--greedy"))
    assert "\tbroken: no sequence of this world fits" in crowded
