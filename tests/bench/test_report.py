import sys
from pathlib import Path

import pytest

from pairmi.bench.report import STYLES, draw_frontiers, family, frontier, pyplot, table
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.types import PairmiError

RECORDS = [
    {"rule": "eb:budget=0", "passes": 4.0, "agreement": 1.0},
    {"rule": "eb:budget=1", "passes": 2.0, "agreement": 0.5},
    {"rule": "eb:budget=2", "passes": 3.0, "agreement": 0.5},
    {"rule": "top-k:k=2", "passes": 2.0, "agreement": 0.25},
]


def test_a_table_is_aligned_markdown_with_short_numbers() -> None:
    lines = table([{"rule": "eb", "kl": 1 / 3}, {"rule": "sequential", "kl": 1e-15}, {"rule": "x"}], ("rule", "kl")).splitlines()
    assert lines == [
        "| rule       | kl     |",
        "| ---------- | ------ |",
        "| eb         | 0.3333 |",
        "| sequential | 0      |",
        "| x          |        |",
    ]


def test_a_table_of_nothing_has_its_head() -> None:
    assert table([], ("rule", "kl")).splitlines() == ["| rule | kl |", "| ---- | -- |"]


def test_the_frontier_is_what_nothing_beats() -> None:
    assert frontier(RECORDS, "passes", "agreement") == [RECORDS[1], RECORDS[0]]
    assert frontier([], "passes", "agreement") == []


def test_the_family_of_a_specification_is_its_rule() -> None:
    assert [family(record["rule"]) for record in RECORDS] == ["eb", "eb", "eb", "top-k"]


def test_every_rule_has_its_own_style() -> None:
    assert set(STYLES) == set(CATALOGUE)
    assert len(set(STYLES.values())) == len(STYLES)


def test_figures_are_drawn(tmp_path: Path) -> None:
    draw_frontiers({"xor": RECORDS, "potts": RECORDS, "new": [{"rule": "new", "passes": 1.0, "agreement": 1.0}]}, "passes", "agreement",
                   tmp_path / "deep" / "frontier.png")  # fmt: skip
    assert (tmp_path / "deep" / "frontier.png").read_bytes().startswith(b"\x89PNG")


def test_a_missing_matplotlib_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PairmiError, match=r"^figure: matplotlib is missing; pip install 'pairmi\[plot\]'$"):
        pyplot()
