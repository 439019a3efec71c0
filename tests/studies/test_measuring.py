import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from heads import sudoku
from jobs import Blind
from pairmi.bench.ledger import Ledger
from pairmi.commit import Sampling
from pairmi.spread.local import Local
from pairmi.spread.placed import placed
from pairmi.spread.units import Failure, Incomplete, Job, Unit
from pairmi.types import PairmiError
from studies import frontiers
from studies.board_measures import settings_of
from studies.boards import make_boards
from studies.frontiers import Measuring, recorded
from sudoku_frontiers import main

MODEL = replace(sudoku(), head=Blind())
BOARDS = make_boards("empty", 2)
JOB = Measuring(MODEL, BOARDS)
SPECS = ("top-k:k=40", "mi-guided", "top-k:k=27")  # the second cannot be measured


def grid(*specs: str) -> list[dict[str, Any]]:
    return [settings_of(MODEL, BOARDS, spec, Sampling(seed=3)) for spec in specs]


def ignore(failure: Failure) -> None:
    pass


def test_a_setting_is_a_unit_that_is_named_by_its_content() -> None:
    assert isinstance(JOB, Job)
    plain, again, other = (JOB.unit(settings) for settings in grid("top-k:k=40", "top-k:k=40", "top-k:k=27"))
    assert re.fullmatch(r"top-k:k=40-\w{8}/seed3/0-2/\w{16}", plain.name)
    assert plain.name == again.name != other.name
    verified = JOB.unit(settings_of(MODEL, BOARDS, "top-k:k=40", Sampling(seed=3, verify=True)))
    assert verified.name.startswith("top-k:k=40 verified-")
    moved = placed(Measuring(sudoku(), BOARDS).model, "meta")
    assert moved.backbone.position.device.type == "meta"


def test_what_is_measured_is_written_at_once_and_what_is_there_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    settings = grid("top-k:k=40", "top-k:k=27", "top-k:k=40", "threshold")
    stream = recorded(JOB, settings, Ledger(file), Local(), ignore)
    first = next(stream)
    assert [json.loads(line) for line in file.read_text().splitlines()] == [first]
    assert first["engine"] == "Local()"
    stream.close()
    before = file.read_text()
    done: list[Unit] = []

    class Watched(Local):
        def run(self, job: Job, units: Any, in_order: bool = True) -> Any:
            done.extend(units)
            return super().run(job, units, in_order)

    records = list(recorded(JOB, settings, Ledger(file), Watched(), ignore))
    assert [record["settings"]["rule"] for record in records] == ["top-k:k=40", "top-k:k=27", "threshold"]
    assert [unit.items[0]["rule"] for unit in done] == ["top-k:k=27", "threshold"]
    assert records[0] == first
    assert file.read_text().startswith(before)
    assert len(file.read_text().splitlines()) == 3
    assert list(recorded(JOB, settings, Ledger(file), Watched(), ignore)) == records
    assert len(done) == 2


class Backwards(Local):
    """The last unit first."""

    def run(self, job: Job, units: Any, in_order: bool = True) -> Any:
        assert not in_order
        return super().run(job, list(units)[::-1])


def test_records_are_in_the_order_of_the_grid_whatever_comes_first(tmp_path: Path) -> None:
    file, failed = tmp_path / "records.jsonl", []
    stream = frontiers.sweep(MODEL, BOARDS, SPECS, Sampling(), Ledger(file), engine=Backwards(), report=failed.append)
    assert [next(stream)["settings"]["rule"] for _ in range(2)] == ["top-k:k=40", "top-k:k=27"]
    with pytest.raises(Incomplete, match="1 could not be done, named above; everything else is finished"):
        next(stream)
    assert [json.loads(line)["settings"]["rule"] for line in file.read_text().splitlines()] == ["top-k:k=27", "top-k:k=40"]
    assert re.fullmatch(r"mi-guided-\w{8}/seed0/0-2/\w{16}: RuntimeError: nothing to be seen", str(failed[0]))


def test_where_nothing_can_be_measured_the_run_is_refused_unless_there_was_something_before() -> None:
    ledger = Ledger()
    with pytest.raises(PairmiError, match=r"^mi-guided-\w{8}/seed3/0-2/\w{16}: RuntimeError: nothing to be seen$"):
        list(recorded(JOB, grid("mi-guided"), ledger, Local(), ignore))
    list(recorded(JOB, grid("top-k:k=40"), ledger, Local(), ignore))
    with pytest.raises(Incomplete, match="1 could not be done"):
        list(recorded(JOB, grid("mi-guided", "top-k:k=40"), ledger, Local(), ignore))


def test_without_one_by_one_decoding_there_is_no_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = frontiers.board_measures.measure

    def touchy(model: Any, boards: Any, spec: str, *how: Any) -> Any:
        if spec == "sequential":
            raise MemoryError
        return measure(model, boards, spec, *how)

    monkeypatch.setattr("studies.board_measures.measure", touchy)
    monkeypatch.setattr("sudoku_frontiers.load", lambda *names, **options: MODEL)
    file = tmp_path / "all.jsonl"
    with pytest.raises(Incomplete, match="1 could not be done"):
        main(["generate", "--limit", "2", "--rules", "top-k:k=40", "--json", str(file)])
    assert capsys.readouterr().out == ""
    assert [json.loads(line)["settings"]["rule"] for line in file.read_text().splitlines()] == ["top-k:k=40"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "--workers", "2"], "--workers and --gpus-per-worker are for --engine ray"),
        (["solve", "--limit", "1", "--rules", "top-q"], "rule 'top-q' is unknown; did you mean 'top-k'?"),
        (["solve", "--backbone", "sudoku4"], "sudoku4 is no 9x9 Sudoku model"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(arguments: list[str], message: str) -> None:
    with pytest.raises(PairmiError, match=re.escape(message)):
        main(arguments)


def test_the_number_of_threads_changes_nothing_but_the_times() -> None:
    def stripped() -> list[dict[str, Any]]:
        records = recorded(JOB, grid("top-k:k=27", "mi-bound:mi=probe,floor=1"), Ledger(), Local(), ignore)
        return [{name: value for name, value in record.items() if "seconds" not in name} for record in records]

    one = stripped()
    try:
        torch.set_num_threads(2)
        assert stripped() == one
    finally:
        torch.set_num_threads(1)
