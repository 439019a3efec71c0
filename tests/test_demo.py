import re

import pytest

import demo


def test_the_small_world_is_shown(capsys: pytest.CaptureFixture) -> None:
    demo.small_world()
    out = capsys.readouterr().out
    assert "mi-bound:budget=0,order=highest-entropy" in out
    assert "Mutual information (nats) of r1c2" in out


def test_puzzles_are_solved_by_every_rule_and_its_dependences_shown(capsys: pytest.CaptureFixture) -> None:
    demo.sudoku(1)
    out = capsys.readouterr().out
    board = out.split("\nsolved\n")[0]
    assert re.search(r"\d", board)
    rows = [line.split("|")[1:-1] for line in out.partition("| rule")[2].splitlines()[2:] if line.startswith("| ")]
    table = {name.strip(): (solved.strip(), float(passes)) for name, solved, passes in rows}
    assert list(table) == list(demo.RULES)
    assert table["sequential"][0] == table["mi-guided"][0] == "1 of 1"
    assert table["mi-guided"][1] < table["sequential"][1]
    assert len(re.findall(r"^  r\dc\d - r\dc\d  \d\.\d{3} nats$", out, re.MULTILINE)) == 5


def test_both_parts_are_the_demo(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    shown: list[str] = []
    monkeypatch.setattr(demo, "sudoku", lambda: shown.append("sudoku"))
    monkeypatch.setattr(demo, "small_world", lambda: shown.append("small world"))
    assert demo.main() == 0
    assert shown == ["sudoku", "small world"]
