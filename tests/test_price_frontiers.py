"""What the page says of frontiers, from invented measurements."""

import json
from pathlib import Path

import pytest

import price_frontiers
from pairmi.bench.ledger import Ledger


def record(rule: str, passes: float, nats: float) -> dict:
    return {"rule": rule, "passes": passes, "nats": nats, "interval": [nats / 2, 2 * nats], "sequences": 4, "seed": 0, "acceptance": 0.9}


FOUND = [
    record("mi-bound:charge=calibrated,budget=0.04", 12.0, 0.5),
    record("mi-bound:charge=calibrated,budget=0.01", 20.0, 0.1),
    record("mi-bound:budget=0.05", 14.0, 0.45),
    record("mi-guided:budget=0.6", 9.0, 0.4),
    record("eb:budget=0.5", 30.0, 0.5),
    record("top-k:k=2", 41.0, 0.3),
    record("top-k:k=8", 11.0, 5.0),
]


def test_settings_are_compared_at_the_price_of_the_calibrated() -> None:
    cheap, careful = price_frontiers.compared(FOUND)
    assert (cheap["best without MI"], cheap["ratio"]) == (30.0, 0.4)  # mi-guided looks at pairs, top-k:k=8 costs more
    assert cheap["best uncalibrated mi-bound"] == 14.0
    assert (careful["best without MI"], careful["ratio"]) == ("none so cheap", "")


def test_the_page_keeps_what_stands_above_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(tmp_path / "frontiers.jsonl")
    for one in FOUND:
        ledger.add({"scene": "generating", "rule": one["rule"]}, one)
    calibrations = Ledger(tmp_path / "calibrations.jsonl")
    check = {"budget": 0.06, "predicted": 0.05, "measured": 0.05, "error": 0.01, "passes": 11.0}
    calibrations.add({"what": "reliability", "model": "sudoku", "sequences": 104}, check)
    (tmp_path / "price.md").write_text("# Price\n\nexact\n")
    for _ in range(2):
        monkeypatch.setattr("sys.argv", ["x", "--page", "--records", str(tmp_path), "--out", str(tmp_path / "price.md")])
        price_frontiers.main()
    text = (tmp_path / "price.md").read_text()
    assert text.startswith("# Price\n\nexact\n")
    assert text.count(price_frontiers.MARK) == 1
    assert "| sudoku | 0.06   | 0.05    | 0.05     | 0.01  | yes " in text
    assert "Not measured: " in text
    for name in ("price_generating", "price_reliability"):
        assert (tmp_path / "figures" / f"{name}.png").stat().st_size > 5000
    assert json.loads((tmp_path / "frontiers.jsonl").read_text().splitlines()[0])["settings"]["scene"] == "generating"


def test_every_rule_of_the_catalogue_is_in_a_scene() -> None:
    from pairmi.selectors.catalogue import CATALOGUE

    for name in ("generating", "solving", "protein"):
        assert {rule.partition(":")[0] for rule in price_frontiers.SCENES[name].rules} >= set(CATALOGUE) - {"sequential"}
