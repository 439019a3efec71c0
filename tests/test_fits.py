"""What the page on fits says, from a small fit that is killed, and from invented ones."""

from itertools import islice, permutations
from pathlib import Path

import pytest

import fits
from foreign import made
from pairmi.bench.ledger import Ledger


def test_a_fit_is_killed_and_is_whole_in_the_end(tmp_path: Path) -> None:
    folder = made("letters", tmp_path)
    (tmp_path / "data.txt").write_text("\n".join("".join(letters) for letters in islice(permutations("aabbccabc"), 0, 300_000, 9_999)))
    case = fits.Case("a small one", Path(folder).name, "data.txt", 0.5, 0.25, "□" * 6)
    found = fits.fitted(case, tmp_path, tmp_path / "out")
    assert found["whole"]
    assert found["killed"] in fits.STAGES
    assert set(found["stages"]) >= {"start", "labels", "head", "tune", "price", "report"}
    assert 1 <= found["passes"] <= found["sequential"] == 6
    assert found["seconds"] > sum(found["stages"].values()) - 5


def test_the_page_says_what_was_asked_and_what_it_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(tmp_path / "fits.jsonl")
    one = {"killed": "head", "whole": True, "stages": {"start": 6.0, "labels": 400.0}, "plan": {}, "rule": "eb:budget=1 loses little."}
    one |= {"card": [["0.61", "0.83"]], "passes": 19, "sequential": 64}
    checks = [{"settings": {}, "budget": 0.1, "measured": value, "error": 0.01} for value in (0.11, 0.15)]
    for name, seconds in (("protein", 1300.0), ("bert", 400.0)):
        ledger.add({"case": name, "minutes": fits.CASES[name].minutes}, one | {"seconds": seconds, "reliability": checks})
    page = tmp_path / "fit.md"
    page.write_text("# Fit\n\nabove\n")
    for _ in range(2):
        monkeypatch.setattr("sys.argv", ["x", "--page", "--records", str(tmp_path / "fits.jsonl"), "--out", str(page)])
        fits.main()
    text = page.read_text()
    assert text.startswith("# Fit\n\nabove\n")
    assert text.count(fits.MARK) == 1
    lines = {line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]] for line in text.splitlines() if "|" in line}
    assert lines["protein"] == ["20", "21.67", "yes", "head", "yes", "0.61", "0.83", "1 of 2", "19", "64"]
    assert lines["bert"][:3] == ["4", "6.67", "no"]
    assert "seconds by stage: start 6, labels 400, head 0" in text
