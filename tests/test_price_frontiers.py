"""What the page says of frontiers, from invented measurements."""

import json
import re
from pathlib import Path

import pytest

import price_frontiers
from calibrations import (
    PLANS,
    Plan,
    calibration_key,
    charge_of,
    check_keys,
    checks_of,
    first_charge,
    key_of,
    level_keys,
    levels_of,
    together,
)  # fmt: skip
from pages.price import beating, chosen_knobs, compared, hull, in_parts, passes_at, ratio
from pages.price_exact import totals_of
from pairmi.bench.ledger import Ledger
from pairmi.selectors.charge import Calibration
from price_frontiers import printed, printed_prices

INVENTED = Calibration(-3.0, ((-5.0, 0.0),) * 5, ((1.0,),) * 5)


TUNED = {"world": "xor", "family": "eb:budget", "limit": 0.1, "canvases": 128, "tunings": 200, "passes ratio": 1.1, "sequential": 0}
EXACT = {
    "settings": {"every": 3, "repeats": 200, "worlds": 8},
    "provenance": {"commit": "c0ffee"},
    "compared": 344,
    "gap": 4e-15,
    "skewness": 91.0,
    "coverage": [
        {"sequences": 24, "interval": "ours", "distributions": 80, "mean": 0.97, "lowest": 0.93, "below 93 %": 0, "upper end / price": 1.5}
    ],
    "promises": [TUNED | {"broken": 3}],
    "hardest": {"worlds": ["xor"], "totals": totals_of([TUNED | {"broken": 2}]), "rows": [TUNED | {"broken": 2}]},
}


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


def test_the_page_is_printed_from_records_and_keeps_what_they_do_not_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calibrations = Ledger(tmp_path / "price-calibrations.jsonl")
    calibrations.add(calibration_key("sudoku"), {"calibration": INVENTED.about()})
    for key in level_keys("sudoku", INVENTED, PLANS["sudoku"].levels):  # passes lose twice what they are charged
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
    (tmp_path / "price-exact.json").write_text(json.dumps(EXACT))
    kept = "### Proteins of 64 residues\n\n64 sequences, as printed, commits abc, def; sequential decoding takes 64 passes.\n\n"
    kept += "| rule | passes | nats | 95 % | acceptance |\n| --- |\n| mi-bound:budget=0.02 | 18 | 0.4 | [0.3, 0.5] | 0.9 |\n"
    kept += "\nPasses of a calibrated setting.\n"
    stale = "### 9x9 Sudoku from the empty board\n\nof another day\n"
    lines = ["## Is a budget what a pass loses?", "", "| model | budget | charged | measured | error | worst | passes | sequences |"]
    lines += [
        "| --- |",
        "| sudoku | 0.06 | 0.1 | 0.9 | 0.01 | 7 % | 9 | 5 |",
        "| protein | 0.02 | 0.021 | 0.022 | 0.001 | 3 % | 19 | 128 |",
    ]
    checks = "\n".join(lines)
    (tmp_path / "price.md").write_text(f"# Price\n\n{checks}\n\n## Frontiers\n\n{kept}")
    text = ""
    for number in range(3):
        if number == 2:  # a section whose settings were not all measured again stays
            before = text
            (tmp_path / "price.md").write_text(text.replace(f"### 9x9{text.partition('### 9x9')[2].partition('### ')[0]}", stale))
        monkeypatch.setattr("sys.argv", ["x", "--page", "--records", str(tmp_path), "--out", str(tmp_path / "price.md")])
        price_frontiers.main()
        text = (tmp_path / "price.md").read_text()
    assert "of another day" in text
    text = before
    for heading in ("In short", "Is a budget what a pass loses?", "The promise", "Exact", "Intervals", "Frontiers"):
        assert text.count(f"\n## {heading}\n") == 1
    assert "| sudoku | 0.06   | 0.05    | 0.05     | 0.01  | yes         | -1.0       | 8 %" in text.replace("sudoku  |", "sudoku |")
    assert re.search(
        r"\| protein \| 0.02 +\| 0.021 +\| 0.022 +\| 0.001 +\| yes +\| \+2.0 +\| 3 % +\| 19 +\| 128 ", text
    )  # as it was printed
    assert "`sudoku` 1 of 1 budgets, `protein` 1 of 1 budgets" in text
    assert re.search(r"\| sudoku \| 0.07 +\| 0.14 +\| 0.0007 +\| 20 +\| 7 ", text)
    line = next(line for line in text.splitlines() if line.startswith("| 9x9 Sudoku from the empty board"))
    assert [cell.strip() for cell in line.split("|")[2:-1]] == [
        "sudoku",
        "48",
        "81",
        "0.40 to 0.40",
        "yes",
        "0.86 to 0.86 (1 fewer, 0 more, of 1)",
        "mi-guided:budget=0.6, mi-bound:budget=0.05",
    ]
    assert "Not measured: " in text
    assert text.count("64 sequences, as printed") == 1  # no record says anything of it
    assert "<summary>all 1 settings</summary>\n\n| rule | passes | nats | 95 % | acceptance |\n" in text
    (old,) = printed_prices(printed(text)["Proteins of 64 residues"])
    assert (old["rule"], old["passes"], old["nats"], old["rows"]) == ("mi-bound:budget=0.02", 18.0, 0.4, 64.0)
    assert (old["interval"], old["each"], old["provenance"]) == ([0.3, 0.5], [0.4] * 64, {"commit": "abc, def"})
    assert "Not measured yet: minimal 9x9 puzzles with one solution, antibody chains" in text
    assert "| mi-bound:charge=calibrated,budget=0.04" in text
    assert "| mi-bound:charge=calibrated,budget=0.01" not in text  # of another calibration
    assert "broken in 3 of 200 simulated tunings in exact worlds, in 2 of 200 at the hardest limits; passes 1.10 times" in text
    assert re.search(r"\| xor +\| 128 +\| 1 +\| 3 +\| 200 +\| 1.1 ", text)
    for name in ("price_generating", "price_reliability"):
        assert (tmp_path / "figures" / f"{name}.png").stat().st_size > 5000
    assert json.loads((tmp_path / "price-frontiers.jsonl").read_text().splitlines()[0])["settings"]["scene"] == "generating"


def test_levels_make_budgets_true_and_checks_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PLANS, "protein", Plan(64, 1, 1, 1, levels=((0.1, 7, 0), (0.2, 7, 2)), more=((0.02, 5),)))
    ledger, (plan, shipped) = Ledger(), (PLANS["protein"], {"calibration": INVENTED.about()})
    ledger.add(calibration_key("protein"), shipped)
    for key in level_keys("protein", INVENTED, plan.levels):  # passes lose twice what they may spend
        level = {"measured": 2 * key["allowed"], "predicted": 0.1, "error": 0.01 * key["allowed"], "passes": 9.0, "each": [1.0] * 7}
        ledger.add(key, level)
    assert [one["allowed"] for one in levels_of("protein", ledger)] == [0.1, 0.2]
    made = charge_of("protein", ledger)
    assert made is not None
    assert made.allowed(0.1) == pytest.approx(0.05)
    assert checks_of("protein", ledger) == []
    (first, other), _ = (check_keys("protein", made, budget) for budget in (0.02, 0.06))
    for key, lost in ((first, 0.1), (other, 0.2)):
        found = {"measured": lost, "predicted": 0.1, "error": 0.01, "passes": 9.0, "each": [9 * lost] * key["sequences"]}
        ledger.add(key, found | {"budget": key["budget"]})
    (found,) = checks_of("protein", ledger)
    assert (found["budget"], found["measured"]) == (0.02, pytest.approx((0.1 + 5 * 0.2) / 6))
    assert [(key.get("part"), key["sequences"]) for key in check_keys("protein", made, 0.02)] == [(None, 1), (1, 5)]
    assert len(check_keys("protein", made, 0.06)) == 1


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
    assert in_parts({"sudoku": [found, together(parts[:1])]}) == "`sudoku` at 0.1 was drawn in parts: 0.2 on 2, 0.1 on 2.\n\n"


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


def test_rules_that_were_not_measured_again_stand_beside_those_that_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = price_frontiers.Scene("sudoku", 48, "9x9 Sudoku from the empty board", tuple(one["rule"] for one in FOUND))
    monkeypatch.setattr(price_frontiers, "SCENES", {"generating": scene, "protein": price_frontiers.SCENES["protein"]})
    ledger, calibrations, out = Ledger(), Ledger(), tmp_path / "price.md"
    ours = [one for one in FOUND if "calibrated" in one["rule"]]
    for one in FOUND:
        charge = {"calibration": charge_of("sudoku", calibrations)} if one in ours else {}
        ledger.add(key_of("sudoku") | {"scene": "generating", "rule": one["rule"], "sequences": 48, "seed": 0} | charge, one)
    out.write_text(price_frontiers.page(tmp_path, ledger, calibrations, out, 0))
    assert price_frontiers.AS_PRINTED not in out.read_text()
    few = Ledger()
    for record in ledger.found.values():
        if "calibrated" in record["rule"]:
            few.add(
                record["settings"],
                {name: value for name, value in record.items() if name not in ("settings", "provenance")} | {"passes": 6.0},
            )
    for _ in range(2):
        out.write_text(price_frontiers.page(tmp_path, few, calibrations, out, 0))
    text = out.read_text()
    assert text.count(price_frontiers.AS_PRINTED) == 1
    assert re.search(r"\| top-k:k=2 +\| 41 +\| 0.3 +\| \[0.15, 0.6\] ", text)
    assert re.search(r"\| mi-bound:charge=calibrated,budget=0.04 +\| 0.5 +\| 6 ", text)
    assert "0.09 to 0.20" in text  # 6 by 67.7 and by 30
