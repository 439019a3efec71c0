import json
from pathlib import Path

import pytest

from pairmi.bench.ledger import Ledger
from pairmi.types import PairmiError


def test_what_is_measured_is_measured_once(tmp_path: Path) -> None:
    file, calls = tmp_path / "deep" / "records.jsonl", []

    def measure() -> dict[str, int]:
        calls.append(1)
        return {"value": len(calls)}

    first = Ledger(file)
    assert first.measured({"rule": "a"}, measure)["value"] == 1
    assert first.measured({"rule": "a"}, measure)["value"] == 1
    assert first.measured({"rule": "b"}, measure)["value"] == 2
    again = Ledger(file)
    assert again.measured({"rule": "b"}, measure)["value"] == 2
    assert {"commit", "torch", "machine"} <= again.measured({"rule": "a"}, measure)["provenance"].keys()
    assert len(calls) == 2
    assert Ledger().measured({"rule": "a"}, measure)["value"] == 3


@pytest.mark.parametrize("cut", [1, 20])
def test_a_line_cut_off_by_a_kill_is_measured_again(tmp_path: Path, cut: int) -> None:
    file = tmp_path / "records.jsonl"
    Ledger(file).measured({"rule": "a"}, lambda: {"value": 1})
    Ledger(file).measured({"rule": "b"}, lambda: {"value": 2})
    file.write_text(file.read_text()[: -1 - cut])
    again = Ledger(file)
    assert [json.loads(name) for name in again.found] == [{"rule": "a"}]
    assert again.measured({"rule": "b"}, lambda: {"value": 3})["value"] == 3
    assert {record["value"] for record in Ledger(file).found.values()} == {1, 3}


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text('{"no": "settings"}\n')
    with pytest.raises(PairmiError, match=r"records: line 1 of .* is no measurement; choose another file or remove it"):
        Ledger(file)
