import json
from pathlib import Path

import pytest

from pairmi.bench import frontiers
from pairmi.bench.boards import make_boards
from pairmi.bench.grid import TABLE_1, board_settings
from pairmi.bench.ledger import Ledger
from pairmi.cli import main
from pairmi.commit import Sampling
from pairmi.loading import load
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import rule
from pairmi.types import PairmiError

MODEL = load("sudoku-small")
BOARDS = make_boards("puzzles", 3, "validation")
SPECS = ("sequential", "top-k:k=27", "threshold:threshold=0.99")


@pytest.fixture(scope="module")
def records() -> list[dict]:
    return list(frontiers.sweep(MODEL, BOARDS, SPECS, Sampling(greedy=True), Ledger(), verify=(False, True)))


def test_every_setting_of_the_published_grids_is_a_rule() -> None:
    specs = [*TABLE_1, *board_settings()]
    assert {spec.partition(":")[0] for spec in specs} == set(CATALOGUE)
    for spec in specs:
        assert callable(rule(spec, MODEL))


def test_rules_meet_on_the_same_boards(records: list[dict]) -> None:
    reference = frontiers.reference_among(records)
    assert reference["passes"] == pytest.approx(float((BOARDS.canvases == 9).sum(1).double().mean()))
    rows = frontiers.rows_for_people(records, reference)
    assert [row["verified"] for row in rows] == ["", "yes"] * 3
    assert rows[0]["against"] == "+0.0 [+0.0, +0.0]"
    assert all(set(frontiers.COLUMNS) <= row.keys() for row in rows)
    verified = records[3]
    assert verified["rows"] > verified["passes"]
    assert verified["accepted"] < 1


def test_of_each_rule_the_cheapest_that_loses_nothing(records: list[dict]) -> None:
    reference = frontiers.reference_among(records)
    best = frontiers.loss_free(records, reference, slack=100.0)
    assert {(r["settings"]["rule"].partition(":")[0], r["settings"]["sampling"]["verify"]) for r in best} == {
        (name, way) for name in ("sequential", "top-k", "threshold") for way in (False, True)
    }
    strict = frontiers.loss_free(records, {**reference, "quality": 1.1}, slack=0.0)
    assert strict == []


def test_comparisons(records: list[dict]) -> None:
    reference = frontiers.reference_among(records)
    same = frontiers.compare(records[:1], records[:1], reference)
    assert (same.value, same.low, same.high) == (1, 1, 1)
    assert frontiers.compare(records[4:5], records[:1], reference, slack=100.0).value < 0.6
    areas = frontiers.areas(records)
    assert [row["area"] for row in areas] == sorted((row["area"] for row in areas), reverse=True)
    assert {"sequential", "sequential verified"} <= {row["rule"] for row in areas}
    assert set(frontiers.panels(records)) == {"plain", "verified"}


def test_without_the_reference_there_is_no_comparison() -> None:
    with pytest.raises(PairmiError, match="frontiers: 'sequential' is not among the rules"):
        frontiers.reference_among([])


@pytest.mark.parametrize("name", ["sudoku-solve", "sudoku-generate"])
def test_the_command_goes_on_where_it_stopped(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records, figure = tmp_path / "records.jsonl", tmp_path / "frontier.png"
    command = ["bench", name, "--rules", "threshold:threshold=0.6", "--limit", "2", "--split", "validation", "--records", str(records)]
    assert main([*command, "--figure", str(figure), "--json", str(tmp_path / "all.jsonl")]) == 0
    shown = capsys.readouterr().out
    assert "Fewest passes of each rule within one point" in shown
    assert figure.read_bytes().startswith(b"\x89PNG")
    before = records.read_bytes()
    assert len(before.splitlines()) == 2  # one-by-one decoding comes along
    assert main(command) == 0
    assert capsys.readouterr().out == shown  # read, not measured again: the times are the same
    assert records.read_bytes() == before
    settings = json.loads(before.splitlines()[1])["settings"]
    assert settings["kind"] == ("puzzles" if name == "sudoku-solve" else "empty")
    assert settings["sampling"]["greedy"] == (name == "sudoku-solve")
