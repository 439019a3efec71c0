import math

import pytest

from pairmi.bench.grid import all_settings, settings
from pairmi.bench.worlds import best, full_probe, lossless, sweep
from pairmi.loading import load
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import rule


def test_every_rule_is_swept_and_every_setting_is_a_rule() -> None:
    assert list(dict.fromkeys(spec.partition(":")[0] for spec in all_settings())) == list(CATALOGUE)
    assert len(set(all_settings())) == len(all_settings())
    model = load("xor")
    for spec in all_settings():
        assert isinstance(rule(spec, model), CATALOGUE[spec.partition(":")[0]])


def test_a_rule_without_a_grid_has_its_defaults() -> None:
    assert settings("brand-new") == ["brand-new"]


@pytest.mark.parametrize(
    ("spec", "full"),
    [
        ("eb:budget=1", "eb:budget=1"),
        ("mi-bound", "mi-bound:floor=0"),
        ("mi-bound:budget=1", "mi-bound:budget=1,floor=0"),
        ("mi-bound:floor=0.1", "mi-bound:floor=0.1"),
        ("unheard-of", "unheard-of"),
    ],
)
def test_in_exact_worlds_nothing_is_pruned(spec: str, full: str) -> None:
    assert full_probe(spec) == full


def test_one_record_for_each_world_rule_and_way() -> None:
    records = list(sweep(["xor", "independent"], ["sequential", "top-k:k=3"], (False, True)))
    assert [(r["world"], r["rule"], r["verified"]) for r in records] == [
        (world, spec, verified) for world in ("xor", "independent") for spec in ("sequential", "top-k:k=3") for verified in (False, True)
    ]
    xor = {(r["rule"], r["verified"]): r for r in records if r["world"] == "xor"}
    assert xor["top-k:k=3", False]["agreement"] == pytest.approx(0.5)  # half of all draws have odd parity
    assert xor["top-k:k=3", False]["passes"] == pytest.approx(1)
    assert xor["top-k:k=3", True]["agreement"] == pytest.approx(1)
    assert xor["sequential", False]["passes"] == pytest.approx(3)


def test_by_default_the_whole_catalogue() -> None:
    assert [record["rule"] for record in sweep(["xor"])] == all_settings()


def test_lossless_keeps_the_quickest_of_each_rule_that_loses_nothing() -> None:
    def record(rule: str, kl: float, passes: float) -> dict[str, object]:
        return {"world": "xor", "rule": rule, "verified": False, "kl": kl, "passes": passes}

    records = [
        record("eb:budget=0", 0.0, 3.0),
        record("eb:budget=1", 1e-10, 2.0),
        record("eb:budget=2", 0.1, 1.0),
        record("top-k", 0.2, 1.0),
    ]
    assert lossless([*records, record("sequential", 0.0, 1.5)]) == [record("sequential", 0.0, 1.5), record("eb:budget=1", 1e-10, 2.0)]
    more = [record("top-k:k=2", 0.1, 2.0), record("top-k:k=3", 0.1, 1.5), record("factor", math.inf, 1.0)]
    assert best([*records, *more]) == [record("eb:budget=1", 1e-10, 2.0), record("factor", math.inf, 1.0), record("top-k:k=3", 0.1, 1.5)]
