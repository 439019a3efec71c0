"""What the page says of frontiers, from invented measurements."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

import price_frontiers
from calibrations import Plan, calibration_key, charge_of, check_keys, fastest_level, first_charge, key_of, level_keys, together
from pages.price import beating, chosen_knobs, compared, hull, passes_at, ratio
from pairmi.bench.ledger import Ledger
from pairmi.selectors.charge import Calibration

INVENTED = Calibration(-3.0, ((-5.0, 0.0),) * 5, ((1.0,),) * 5)


def record(rule: str, passes: float, nats: float) -> dict:
    plain = {"rule": rule, "passes": passes, "nats": nats, "interval": [nats / 2, 2 * nats], "seed": 0, "acceptance": 0.9}
    return plain | {"each": [0.5 * nats, 1.5 * nats] * 24, "sequences": 48, "rows": 81.0, "probe_rows": 0.0}


FOUND = [
    record("mi-bound:charge=calibrated,budget=0.04", 12.0, 0.5),
    record("mi-bound:charge=calibrated,budget=0.01", 20.0, 0.1),
    record("mi-bound:budget=0.05", 14.0, 0.45),
    record("mi-bound:budget=0.2", 30.0, 0.48),
    record("mi-guided:budget=0.6", 9.0, 0.4),
    record("eb:budget=0.5", 30.0, 0.5),
    record("top-k:k=2", 41.0, 0.3),
    record("top-k:k=4", 11.0, 5.0),
]


def test_between_two_settings_stands_one_of_them_for_each_sequence() -> None:
    points = [(0.0, 81.0), (0.5, 30.0), (0.3, 60.0), (0.6, 31.0), (1.0, 20.0)]
    assert hull(points) == [(0.0, 81.0), (0.5, 30.0), (1.0, 20.0)]  # (0.3, 60) lies above the line, (0.6, 31) is worse in both
    assert passes_at(points, 0.25) == pytest.approx(55.5)
    assert passes_at(points, 7.0) == 20.0


def test_settings_are_compared_at_the_price_of_the_calibrated() -> None:
    value, low, high = ratio(FOUND[0], [one for one in FOUND if one["rule"][:2] in ("eb", "to")])
    assert (value, low, high) == (pytest.approx(0.4), pytest.approx(0.4), pytest.approx(0.4))  # all lose in proportion: no doubt
    lines = compared(FOUND)
    assert lines[0]["without MI"].startswith("0.40 ")
    assert lines[1]["without MI"].startswith("0.30 ")  # 20 / 67.7: a third of the way from sequential to top-k
    assert [one["rule"] for one in beating(FOUND)] == ["mi-guided:budget=0.6"]
    assert chosen_knobs(FOUND) == ["mi-bound:budget=0.05"]


def test_the_page_keeps_what_stands_above_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calibrations = Ledger(tmp_path / "price-calibrations.jsonl")
    calibrations.add(calibration_key("sudoku"), {"calibration": INVENTED.about()})
    for key in level_keys("sudoku", INVENTED):  # passes lose twice what they are charged
        assert charge_of("sudoku", calibrations) is None
        level = {"budget": key["allowed"], "measured": 2 * key["allowed"], "error": 0.01 * key["allowed"], "passes": 20.0}
        calibrations.add(key, level | {"each": [1.0] * 7})
    made = charge_of("sudoku", calibrations)
    assert made is not None
    assert made.allowed(0.06) == pytest.approx(0.03)
    charge = made.about()
    check = {"budget": 0.06, "predicted": 0.05, "measured": 0.05, "error": 0.01, "passes": 11.0, "each": [0.1] * 99 + [0.9]}
    calibrations.add(check_keys("sudoku", made, 0.06)[0], check)
    ledger = Ledger(tmp_path / "price-frontiers.jsonl")
    for one in FOUND:
        own = {"calibration": charge if one["rule"].endswith("0.04") else {"another": True}} if "calibrated" in one["rule"] else {}
        settings = {"scene": "generating", "rule": one["rule"], "sequences": 48, "seed": 0}
        ledger.add(key_of("sudoku") | settings | own, one)
    kept = "### Proteins of 64 residues\n\n64 sequences, as they were printed.\n\n| rule | nats |\n"
    stale = "### 9x9 Sudoku from the empty board\n\nof another day\n"
    lines = ["## Is a budget what a pass loses?", "", "| model | budget | charged | measured | error | worst | passes | sequences |"]
    lines += [
        "| --- |",
        "| sudoku | 0.06 | 0.1 | 0.9 | 0.01 | 7 % | 9 | 5 |",
        "| protein | 0.02 | 0.021 | 0.022 | 0.001 | 3 % | 19 | 128 |",
    ]
    checks = "\n".join(lines)
    (tmp_path / "price.md").write_text(f"# Price\n\nexact\n\n{price_frontiers.MARK}\n\n{checks}\n\n## Frontiers\n\n{stale}\n{kept}")
    for _ in range(2):
        monkeypatch.setattr("sys.argv", ["x", "--page", "--records", str(tmp_path), "--out", str(tmp_path / "price.md")])
        price_frontiers.main()
    text = (tmp_path / "price.md").read_text()
    assert text.startswith("# Price\n\nexact\n")
    assert text.count(price_frontiers.MARK) == 1
    assert "| sudoku | 0.06   | 0.05    | 0.05     | 0.01  | yes         | -1.0       | 8 %" in text.replace("sudoku  |", "sudoku |")
    assert re.search(
        r"\| protein \| 0.02 +\| 0.021 +\| 0.022 +\| 0.001 +\| yes +\| \+2.0 +\| 3 % +\| 19 +\| 128 ", text
    )  # as it was printed
    assert re.search(r"\| sudoku \| 0.07 +\| 0.14 +\| 0.0007 +\| 20 +\| 7 ", text)
    assert "Not measured: " in text
    assert text.count(kept) == 1  # no record says anything of it
    assert "of another day" not in text
    assert "Not measured yet: minimal 9x9 puzzles with one solution, antibody chains" in text
    assert "| mi-bound:charge=calibrated,budget=0.04" in text
    assert "| mi-bound:charge=calibrated,budget=0.01" not in text  # of another calibration
    for name in ("price_generating", "price_reliability"):
        assert (tmp_path / "figures" / f"{name}.png").stat().st_size > 5000
    assert json.loads((tmp_path / "price-frontiers.jsonl").read_text().splitlines()[0])["settings"]["scene"] == "generating"


def test_a_section_of_a_former_calibration_says_what_its_budgets_are_called_now() -> None:
    offset, slope = price_frontiers.FORMER["sudoku"]
    text = "### Title\n\nfigures\n\n| mi-bound:charge=calibrated,budget=0.04 | 1 |\n"
    same = replace(INVENTED, offset=offset, slope=slope)
    once = price_frontiers.renamed(text, "sudoku", same)
    assert "0.04 here is 0.04 now" in once
    doubled = replace(same, offset=offset + math.log(2))  # the same sets lose twice as much
    again = price_frontiers.renamed(once, "sudoku", doubled)
    assert "0.04 here is 0.08 now" in again
    assert "0.04 here is 0.04 now" not in again
    assert again.startswith("### Title\n\n")
    assert again.endswith("figures\n\n| mi-bound:charge=calibrated,budget=0.04 | 1 |\n")


def test_the_rule_that_ships_is_the_fastest_level_that_keeps_the_limit() -> None:
    plan = Plan(10, 4, 4, 0, level=50, levels=(0.01, 0.1, 0.5), limit=0.05)
    lost = [[0.1, 0.2] * 25, [0.2, 0.4] * 25, [2.0, 4.0] * 25]
    measured = zip(plan.levels, lost, (9.0, 5.0, 2.0), strict=True)
    found = [{"budget": allowed, "each": each, "passes": passes} for allowed, each, passes in measured]
    charge = replace(INVENTED, levels=tuple((math.log(allowed), math.log(3 * allowed)) for allowed in plan.levels))
    best = fastest_level(plan, charge, found)
    assert best.rule == "mi-bound:charge=calibrated,budget=0.3"  # the name of what may spend 0.1
    assert charge.allowed(0.3) == pytest.approx(0.1)
    assert (best.passes, best.sequential_passes, best.sequences, len(best.tested)) == (5.0, 10.0, 50, 3)
    assert best.loss == pytest.approx(0.03)
    assert best.tested[1].bound <= 0.05 < best.tested[2].bound
    assert not fastest_level(replace(plan, limit=0.001), charge, found).kept


def test_checks_on_other_draws_count_as_one() -> None:
    parts = [
        {"budget": 0.1, "predicted": 0.1, "measured": 0.2, "error": 0.03, "passes": 10.0, "each": [2.0, 2.0]},
        {"budget": 0.1, "predicted": 0.1, "measured": 0.1, "error": 0.04, "passes": 20.0, "each": [1.0, 3.0]},
    ]
    found = together(parts)
    assert found["measured"] == pytest.approx(sum(found["each"]) / 60)  # all that was lost by all passes
    assert found["error"] == pytest.approx(((0.03 * 20) ** 2 + (0.04 * 40) ** 2) ** 0.5 / 60)
    assert (found["passes"], found["sequences"], found["nats"]) == (15.0, 4, 2.0)
    assert together(parts[:1])["measured"] == 0.2


def test_a_charge_is_that_of_the_records_or_of_the_file_of_the_head() -> None:
    assert first_charge("protein", {"calibration": INVENTED.about()}) == INVENTED
    shipped = first_charge("sudoku", None)
    assert shipped is not None
    assert (shipped.offset, shipped.slope, shipped.levels) == (0.0, 1.0, ())  # its budgets are made true by the plan's levels
    assert first_charge("albert-zh", None) is None  # has no head


def test_every_rule_of_the_catalogue_is_in_a_scene() -> None:
    from pairmi.selectors.catalogue import CATALOGUE

    for name in price_frontiers.SCENES:
        assert {rule.partition(":")[0] for rule in price_frontiers.SCENES[name].rules} >= set(CATALOGUE) - {"sequential"}
