import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from heads import sudoku
from pairmi.backbones.checkpoint import fingerprint
from pairmi.bench.ledger import Ledger, resolved
from pairmi.commit import Sampling
from pairmi.mi.head import LowRankConfig, LowRankHead
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import parameters
from pairmi.types import PairmiError
from studies.board_measures import settings_of
from studies.boards import make_boards
from worlds import Linked


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


@pytest.mark.parametrize("text", ['{"no": "settings"}\n', "a letter\n", "[1]\n"])
def test_another_kind_of_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text(text)
    with pytest.raises(PairmiError, match=r"records: line 1 of .* is no measurement; choose another file or remove it"):
        Ledger(file)


def test_a_rule_is_known_by_all_that_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    model = sudoku()
    assert resolved("eb", model) == resolved(f"eb:budget={parameters('eb')['budget']}", model) != resolved("eb:budget=7", model)
    assert resolved("mi-bound", model)["mi"]["type"] == "Probe"
    assert resolved("mi-bound:floor=0.02", model)["mi"] != resolved("mi-bound", model)["mi"]
    headed = replace(model, head=LowRankHead(LowRankConfig(8, 9, length=81)))
    assert resolved("mi-bound", headed)["mi"] == fingerprint(headed.head.state_dict())
    assert resolved("eb", headed) == resolved("eb", model)
    assert resolved("mi-bound:mi=shuffled,commit=one", headed)["rule"]["mi"] == {
        "type": "Shuffled",
        "mi": resolved("mi-bound", headed)["mi"],
    }
    graph = replace(model, task=Linked(torch.ones(81, 81).double()))
    other = replace(model, task=Linked(torch.eye(81).double()))
    assert resolved("mi-bound:mi=structural", graph) != resolved("mi-bound:mi=structural", other)


def test_a_changed_default_brings_no_old_numbers_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model, boards = sudoku(), make_boards("empty", 2)
    file = tmp_path / "records.jsonl"
    Ledger(file).measured(settings_of(model, boards, "eb", Sampling()), lambda: {"value": "old"})
    assert Ledger(file).measured(settings_of(model, boards, "eb", Sampling()), lambda: {"value": "new"})["value"] == "old"

    @dataclass(frozen=True)
    class Another(CATALOGUE["eb"]):
        budget: float = 3.0

    monkeypatch.setitem(CATALOGUE, "eb", Another)
    assert Ledger(file).measured(settings_of(model, boards, "eb", Sampling()), lambda: {"value": "new"})["value"] == "new"
