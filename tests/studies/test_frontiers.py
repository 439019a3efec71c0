import json
from pathlib import Path

import pytest

from pairmi.bench.ledger import Ledger
from pairmi.commit import Sampling
from pairmi.loading import load
from pairmi.types import PairmiError
from studies import frontiers
from studies.boards import make_boards
from sudoku_frontiers import main

MODEL = load("sudoku")
BOARDS = make_boards("puzzles", 3, "validation")
SPECS = ("sequential", "top-k:k=27", "threshold:threshold=0.99")


@pytest.fixture(scope="module")
def records() -> list[dict]:
    return list(frontiers.sweep(MODEL, BOARDS, SPECS, Sampling(greedy=True), Ledger(), verify=(False, True)))


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


def test_ways_of_charging_and_drawing_are_chosen_apart(records: list[dict]) -> None:
    plain = {**records[2], "passes": 9.0}
    coupled = {**plain, "passes": 3.0, "settings": plain["settings"] | {"rule": "top-k:k=4,draw=coupled,defer=0.1"}}
    slower = {**coupled, "passes": 4.0, "settings": plain["settings"] | {"rule": "top-k:k=2,draw=coupled,defer=0.2"}}
    assert frontiers.loss_free([plain, slower, coupled], {**plain, "quality": 0.0}) == [plain, coupled]


def test_a_figure_has_a_panel_for_each_way(records: list[dict]) -> None:
    assert set(frontiers.panels(records)) == {"plain", "verified"}


def test_without_the_reference_there_is_no_comparison() -> None:
    with pytest.raises(PairmiError, match="frontiers: 'sequential' is not among the rules"):
        frontiers.reference_among([])


@pytest.mark.parametrize("name", ["solve", "generate"])
def test_the_command_goes_on_where_it_stopped(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records, figure = tmp_path / "records.jsonl", tmp_path / "frontier.png"
    command = [name, "--rules", "threshold:threshold=0.6", "--limit", "2", "--split", "validation", "--records", str(records)]
    main([*command, "--figure", str(figure), "--json", str(tmp_path / "all.jsonl")])
    shown = capsys.readouterr().out
    assert "Fewest passes of each rule within one point of sequential decoding" in shown
    assert figure.read_bytes().startswith(b"\x89PNG")
    before = records.read_bytes()
    assert len(before.splitlines()) == 2  # one-by-one decoding comes along
    main(command)
    assert capsys.readouterr().out == shown  # read, not measured again: the times are the same
    assert records.read_bytes() == before
    settings = json.loads(before.splitlines()[1])["settings"]
    assert settings["kind"] == ("puzzles" if name == "solve" else "empty")
    assert settings["sampling"]["greedy"] == (name == "solve")


@pytest.mark.parametrize(
    ("temperature", "greedy", "drawn_at"), [(None, False, 1.0), ("0", True, 1.0), ("0.5", False, 0.5), ("0.0", True, 1.0)]
)
def test_temperature_0_is_greedy(tmp_path: Path, temperature: str | None, greedy: bool, drawn_at: float) -> None:
    records = tmp_path / "records.jsonl"
    command = ["generate", "--rules", "top-k:k=40", "--limit", "1", "--json", str(records)]
    main([*command, *(["--temperature", temperature] if temperature else [])])
    for line in records.read_text().splitlines():
        sampling = json.loads(line)["settings"]["sampling"]
        assert (sampling["greedy"], sampling["temperature"]) == (greedy, drawn_at)


def test_probes_are_in_a_column_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = tmp_path / "records.jsonl"
    command = ["solve", "--rules", "mi-bound:mi=probe,floor=0,budget=5", "--limit", "2"]
    main([*command, "--json", str(records)])
    assert "| probe_rows |" in capsys.readouterr().out
    one, guided = (json.loads(line) for line in records.read_text().splitlines())
    assert one["probe_rows"] == 0 < guided["probe_rows"]
    for record in (one, guided):
        assert record["rows"] == record["passes"] == sum(record["each"]["rows"]) / 2  # without the probes in both


def test_sequential_alone_is_a_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    main(["generate", "--rules", "sequential", "--limit", "1"])
    assert "| sequential |" in capsys.readouterr().out
