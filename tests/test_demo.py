from pathlib import Path

import pytest

import demo
import pairmi
from pairmi.loading import load


def test_the_tuned_rule_is_shown_against_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(1, "sudoku", tmp_path / "demo.png") == 0
    out = capsys.readouterr().out
    rows = [line.split("|")[1:-1] for line in out.splitlines() if line.startswith("| ") and "rule" not in line][1:]
    table = {name.strip(): (float(passes), float(price)) for name, passes, _, price, _ in rows}
    tuned = load("sudoku").rule or "mi-bound"
    assert list(table) == ["sequential", demo.WITHOUT_MI, tuned]
    assert table["sequential"] == (81, 0)
    assert table[tuned][0] < table[demo.WITHOUT_MI][0] < 81
    assert (tmp_path / "demo.png").stat().st_size > 10_000
    assert "pairmi explore" in out
    assert pairmi.decode(load("sudoku"), "." * 81, tuned).passes == table[tuned][0]
