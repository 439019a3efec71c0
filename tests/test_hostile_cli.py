"""Lines that a hurried, mistaken or hostile user types: each ends with a known exit code and one clear line, none with a traceback."""

import io
import os
import shlex
from pathlib import Path

import pytest

from pairmi.cli import main

E, H, X = "." * 16, "1234" + "." * 12, "..."
MI, DECODE, XOR = (
    f"mi --backbone sudoku4 --canvas {H}",
    f"decode --backbone sudoku4 --canvas {H}",
    "bench exact --worlds xor --rules sequential",
)
PLAN, LABELS = "plan --backbone sudoku4 --states 9", "labels --backbone sudoku4 --out labels --states 9"
HEAD, TABLES = "train head --labels labels --run run", "train tables --labels labels --run run --steps 1"
REFUSED = f"""
nonsense
--nonsense
mi
decode
train
bench
data
plan
labels
explore --port 99999999 --no-browser
explore --port -5 --no-browser
explore --port many --no-browser
explore --backbone nowhere --no-browser
mi --backbone sudoku4
mi --backbone sudoku4 --canvas
mi --backbone sudoku4 --canvas ''
mi --backbone '' --canvas {E}
mi --backbone nowhere --canvas {E}
mi --backbone . --canvas {E}
mi --backbone /dev/null --canvas {E}
mi --backbone text.txt --canvas {E}
mi --backbone sudoku4 --canvas {E}.
mi --backbone sudoku4 --canvas 1
mi --backbone sudoku4 --canvas 5{E[1:]}
mi --backbone sudoku4 --canvas é{E[1:]}
mi --backbone sudoku4 --canvas 1234341221434321
mi --backbone sudoku4 --canvas empty.txt
mi --backbone sudoku4 --canvas folder
mi --backbone sudoku4 --canvas no/such/file
mi --backbone sudoku4 --canvas missing.txt
mi --backbone sudoku4 --canvas binary.txt
mi --backbone sudoku4 --canvas text.txt
mi --backbone sudoku4 --canvas -
{MI} --top -1
{MI} --top 1.5
{MI} --top x
{MI} --top ''
{MI} --top 99999999999999999999999
{MI} --floor -1
{MI} --floor nan
{MI} --floor inf
{MI} --batch 0
{MI} --batch -3
{MI} --form nonsense
{MI} --draws 0
{MI} --draws 2 --form joint
{MI} --draws 2 --floor 0.1
{MI} --error 0.1
{MI} --draws 1 --error 0.1
{MI} --draws 2 --error 0
{MI} --mi nonsense
{MI} --mi head
{MI} --head nowhere
{MI} --head text.txt
{MI} --figure map.xyz
{MI} --figure map
{MI} --figure folder
{MI} --figure nowhere/map.png
{MI} --figure text.txt/map.png
{MI} --figure ''
{MI} --figure /proc/nowhere/map.png
{MI} --mi probe --head nowhere
{MI} --mi head --form tv
{MI} --nonsense
mi --backbone sudoku4 --canvas missing.csv
{DECODE} --rule nonsense
{DECODE} --rule ''
{DECODE} --rule :
{DECODE} --rule eb:budget
{DECODE} --rule eb:budget=
{DECODE} --rule eb:budget=x
{DECODE} --rule eb:budget=-1
{DECODE} --rule eb:budget=nan
{DECODE} --rule eb:budget=1,budget=2
{DECODE} --rule eb:nonsense=1
{DECODE} --rule top-k:k=0
{DECODE} --rule top-k:k=1.5
{DECODE} --rule top-k:by=nonsense
{DECODE} --rule mi-bound:order=nonsense
{DECODE} --rule mi-bound:mi=nonsense
{DECODE} --rule mi-bound:mi=head
{DECODE} --rule mi-bound:form=nonsense
{DECODE} --rule mi-bound:floor=-1
{DECODE} --rule mi-bound:commit=nonsense
{DECODE} --rule maskgit:steps=0
{DECODE} --rule klass:history=-1
{DECODE} --rule threshold:threshold=nan
{DECODE} --seed -1
{DECODE} --seed 18446744073709551616
{DECODE} --seed 9223372036854775808
{DECODE} --seed 1e3
{DECODE} --temperature 0
{DECODE} --temperature -1
{DECODE} --temperature nan
{DECODE} --temperature inf
{DECODE} --temperature x
{DECODE} --accept 2
{DECODE} --accept -0.1
{DECODE} --accept nan
{DECODE} --batch 0
{DECODE} --json --jsonl
{DECODE} --workers 2
{DECODE} --workers 0
{DECODE} --gpus-per-worker -1
{DECODE} --engine nonsense
decode --backbone sudoku4 --canvas 11{E[2:]}
rules --nonsense
data nonsense
data sudoku --count 0
data sudoku --count -1
data sudoku --count x
data sudoku --seed -1
data sudoku --seed 9223372036854775808
data sudoku --givens x
data sudoku --givens 0
data sudoku --givens 99
data sudoku --givens 29-25
data sudoku --givens 25-
data sudoku --givens -25
data sudoku --givens ²
data sudoku --givens 25 --minimal
{PLAN} --sample 0
{PLAN} --workers 0
{PLAN} --tflops 0
{PLAN} --tflops nan
{PLAN} --length 0
{PLAN} --positions -1
{PLAN} --canvas missing.txt
plan --states 0
plan --states x
plan --backbone nowhere --states 3
labels --backbone nowhere --out labels --states 9
{LABELS}
{LABELS} --states 0
{LABELS} --seed -1
{LABELS} --shard 0
{LABELS} --positions -1
{LABELS} --part x
{LABELS} --part 1
{LABELS} --threads -1
{LABELS} --floor -1
{LABELS} --draws 0
{LABELS} --draws 2 --form entropy
labels --backbone sudoku4 --out text.txt --states 9
labels --backbone sudoku4 --out text.txt/labels --states 9
labels --backbone sudoku4 --out '' --states 9
train nonsense --run run
train tables
train tables --labels labels --run text.txt
{TABLES} --evaluate-every 0
{TABLES} --steps 0
{TABLES} --decay 2
{TABLES} --batch 0
{TABLES} --seed -1
{TABLES} --threads -1
{TABLES} --device nonsense
{TABLES} --out folder
{TABLES} --out nowhere/weights.safetensors
{TABLES} --hops 1
train head --run run
{HEAD}
{HEAD} --backbone sudoku4
{HEAD} --limit 0
{HEAD} --layers -1
{HEAD} --rate 0
{HEAD} --hops -1
{HEAD} --followed 0.5
bench nonsense
bench exact --worlds mars
bench exact --worlds xor --rules nonsense
bench exact --labels labels
{XOR} --json folder
{XOR} --json nowhere/out.jsonl
{XOR} --figure out.xyz
bench speed --limit 0
bench speed --json folder
bench protein --records folder
bench protein --records nowhere/r.jsonl
bench protein --records text.txt --limit 1 --rules top-k:k=40
bench protein --figure folder
bench protein --limit 0
bench protein --rules
bench protein --rules top-k:k=-1
bench protein --head nowhere
decode --canvas 1............... --backbone sudoku4 --workers 2
bench head
bench head --labels missing
bench head --labels folder
bench head --labels text.txt
bench probe --labels folder
bench protein --backbone xor
bench protein --lengths x
bench protein --lengths 0-5
bench protein --clusters 0
bench protein --reference missing.fasta
bench protein --rules nonsense
bench contacts
bench contacts --folder missing
bench contacts --folder folder
bench contacts --blocks 0 --folder folder
bench contacts --limit 0 --folder folder
bench contacts --folder folder --chain MKT
bench protein --batch 0
bench probe
bench probe --labels missing --limit 0
bench sudoku-solve
bench sudoku-generate --limit 1
bench speed --symbols 0
"""
DONE = f"""

--help
--version
mi --help
train head --help
bench exact --help
rules
rules --json
{MI} --top 0
{MI} --top 9999
{MI} --floor 0
mi --backbone xor --canvas ... --json
decode --backbone sudoku4 --canvas 12 --skip-invalid
{DECODE} --seed 9223372036854775807
{DECODE} --rule eb:budget=1e300
{DECODE} --rule eb:
{DECODE} --accept 0 --greedy --verify
{XOR} --verify
{PLAN} --sample 1 --json
"""
DAMAGED = {  # line: whose bug it is
}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what these lines name."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.txt").write_text("this is no canvas, no weights and no record\n")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "binary.txt").write_bytes(bytes(range(256)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    return tmp_path


def lines(table: str) -> list:
    marks = {line: pytest.mark.xfail(strict=True, reason=reason) for line, reason in DAMAGED.items()}
    return [pytest.param(line, id=line or "bare", marks=marks.get(line, ())) for line in table.splitlines()[1:]]


def test_there_are_enough_of_them() -> None:
    assert len(lines(REFUSED)) > 200
    assert len(set(REFUSED.splitlines())) == len(REFUSED.splitlines())


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("line", lines(REFUSED))
def test_what_cannot_be_is_refused_in_one_line(line: str, capsys: pytest.CaptureFixture[str], place: Path) -> None:
    before = sorted(os.listdir(place))
    assert main(shlex.split(line)) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith("pairmi")
    assert error.count("\n") == 1
    assert sorted(os.listdir(place)) == before  # nothing is left behind


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("line", lines(DONE))
def test_what_looks_odd_and_can_be_is_done(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(line)) in (0, 1)
    assert "Traceback" not in capsys.readouterr().err
