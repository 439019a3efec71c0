import pytest

from pages.sudoku import headline, passes_ratio, quickest
from sudoku_results import chosen, first


def record(spec: str, good: str, passes: list[int]) -> dict:
    """A measurement as far as choosing looks at it."""
    each = {"good": good, "passes": passes, "rows": passes}
    settings = {"rule": spec, "sampling": {"verify": False}}
    quality, mean = good.count("1") / len(good), sum(passes) / len(passes)
    return {"settings": settings, "boards": len(good), "quality": quality, "passes": mean, "each": each}


SEQUENTIAL = record("sequential", "1" * 90 + "0" * 10, [80] * 100)
GRID = [
    SEQUENTIAL,
    record("eb:budget=0.5", "1" * 60 + "0" * 40, [20] * 100),  # quick, and loses
    record("eb:budget=0.1", "0" * 2 + "1" * 89 + "0" * 9, [40] * 100),  # a point below: one won, two lost
    record("eb:budget=0.01", "1" * 90 + "0" * 10, [60] * 100),
    record("mi-bound:budget=0.1", "0" + "1" * 90 + "0" * 9, [10, 30] * 50),  # one won, one lost
]


def test_of_each_rule_the_quickest_within_the_slack_is_chosen() -> None:
    assert chosen(GRID, 1.0) == ["sequential", "eb:budget=0.1", "mi-bound:budget=0.1"]
    assert chosen(GRID, 0.0) == ["sequential", "eb:budget=0.01", "mi-bound:budget=0.1"]


def test_the_quickest_without_loss_is_found_for_both_sorts_of_rules() -> None:
    found = [quickest(GRID, pairs) for pairs in (True, False)]
    assert [one["settings"]["rule"] for one in found] == ["mi-bound:budget=0.1", "eb:budget=0.1"]
    assert quickest(GRID[:4], True) is None


def test_the_ratio_of_passes_has_an_interval_around_it() -> None:
    ratio = passes_ratio(GRID[4], GRID[2])
    assert ratio.value == pytest.approx(0.5)
    assert 0.44 < ratio.low < 0.49 < 0.51 < ratio.high < 0.56


def test_the_headline_says_what_pairs_buy_in_passes_and_in_time() -> None:
    times = [{"settings": one["settings"], "seconds": seconds} for one in GRID for seconds in (0.9, one["passes"], 1e3)]
    shown = headline({"empty": (GRID, times), "no pairs": (GRID[:4], times)})
    assert "| mi-bound:budget=0.1 | 0.9     | 20     | eb:budget=0.1 |" in shown
    assert shown.splitlines()[2].endswith("| 0.5             |")
    assert "| no pairs | none without loss   |" in shown


def test_the_first_boards_of_a_measurement() -> None:
    some = first(record("eb", "1101", [1, 2, 6, 8]), 3)
    assert (some["boards"], some["quality"], some["passes"], some["rows"]) == (3, pytest.approx(2 / 3), 3, 3)
    assert some["each"]["good"] == "110"
