import sys
from pathlib import Path

import pytest

import flagship
from flagship import STAGES, carried_out, command, main
from pairmi.cli import main as pairmi


def test_every_stage_waits_for_stages_that_come_before() -> None:
    seen: set[str] = set()
    for name, (needs, _) in STAGES.items():
        assert set(needs) <= seen, name
        seen.add(name)


@pytest.mark.parametrize("name", STAGES)
def test_the_command_of_a_stage_is_one_that_can_be_run(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its script is there, and its options are known."""
    words = command(name, tmp_path, tmp_path)
    if words[1] != "-c":
        script = Path(words[1]).read_text()
        assert all(f'"{word}"' in script for word in words if word.startswith("--"))
        return
    assert pairmi([*words[3 : 5 if words[3] == "train" else 4], "--help"]) == 0
    told = capsys.readouterr().out
    assert all(word in told for word in words if word.startswith("--"))


def test_a_stage_is_run_once_for_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, seen = tmp_path / "stage.py", tmp_path / "seen"
    script.write_text(f"open({str(seen)!r}, 'a').write('x')")
    monkeypatch.setitem(STAGES, "race", ((), str(script)))
    for weights in ("a", "a", "b"):
        carried_out("race", tmp_path, weights)
    assert seen.read_text() == "xx"


def test_what_waits_for_a_stage_that_failed_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text("")
    bad.write_text("raise SystemExit(3)")
    monkeypatch.setattr(flagship, "installed", lambda weights, run: "w")
    monkeypatch.setattr(flagship, "STAGES", {"a": ((), str(good)), "b": ((), str(bad)), "c": (("a",), str(good)), "d": (("b",), str(good))})
    monkeypatch.setattr(sys, "argv", ["flagship.py", "--run", str(tmp_path)])
    assert main() == 1
    assert sorted(file.stem for file in tmp_path.glob("*.done")) == ["a", "c"]
    assert "b failed; not run: d" in capsys.readouterr().err
