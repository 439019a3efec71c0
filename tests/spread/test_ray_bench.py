"""Benchmarks on a real Ray on this machine."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from heads import sudoku
from jobs import Blind
from measurements import by_settings, plain
from pairmi.spread.units import Incomplete
from sudoku_frontiers import main

COMMON = ["--limit", "2", "--split", "validation"]
RULES = {
    "solve": ("mi-guided:mi=attention", "mi-bound:budget=0.1,entropy_weight=0.3,mi=head", "--verify"),
    "generate": ("maskgit:steps=12", "mi-guided:mi=shuffled", "--temperature", "0.8"),
}


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(("name", "workers"), [("solve", (1, 2)), ("generate", (2,))])
def test_a_benchmark_is_the_same_as_here(name: str, workers: tuple[int, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engines = {"local": ["--engine", "local"]} | {f"{n}": ["--engine", "ray", "--workers", f"{n}"] for n in workers}
    for engine, options in engines.items():
        files = ["--records", str(tmp_path / f"{engine}.kept"), "--json", str(tmp_path / f"{engine}.all")]
        main([name, *COMMON, *files, "--rules", *RULES[name], *options])
        shown = capsys.readouterr().out
        assert "Fewest passes of each rule within one point" in shown
    expected = plain(tmp_path / "local.all")
    assert len(expected) == (6 if name == "solve" else 3)
    assert {"quality", "passes", "rows", "accepted", "each"} <= expected[0].keys()
    for engine in engines:
        assert plain(tmp_path / f"{engine}.all") == expected
        assert by_settings(plain(tmp_path / f"{engine}.kept")) == by_settings(expected)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("engine", [["--engine", "local"], ["--engine", "ray", "--workers", "1"]])
def test_a_setting_that_cannot_be_measured_is_named_and_the_exit_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, engine: list[str]
) -> None:
    monkeypatch.setattr("sudoku_frontiers.load", lambda *names, **options: replace(sudoku(), head=Blind()))
    kept, file = tmp_path / "kept.jsonl", tmp_path / "all.jsonl"
    command = ["generate", "--limit", "2", "--rules", "mi-guided", "top-k:k=40", "--records", str(kept)]
    for _ in range(2):  # the second time everything but this one is there
        with pytest.raises(Incomplete, match="1 could not be done, named above; everything else is finished"):
            main([*command, "--json", str(file), *engine])
        out, error = capsys.readouterr()
        assert "top-k:k=40" in out
        assert re.search(r"failed mi-guided-\w{8}/seed0/0-2/\w{16}: RuntimeError: nothing to be seen\n", error)
        assert [record["settings"]["rule"] for record in plain(file)] == ["sequential", "top-k:k=40"]
    assert by_settings(plain(kept)) == by_settings(plain(file))
