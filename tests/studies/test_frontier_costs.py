import math

import numpy as np
import pytest

from studies.frontier_costs import Swept, area, areas, compare, cost_at, cost_ratio


def test_the_cost_of_a_quality_is_read_off_the_frontier() -> None:
    assert cost_at([0.9, 0.5], [16.0, 4.0], 0.7) == pytest.approx(8.0)  # halfway on the logarithm
    assert cost_at([0.5, 0.9], [4.0, 16.0], 0.4) == 4.0
    assert cost_at([0.5, 0.9, 0.3], [4.0, 16.0, 8.0], 0.9) == pytest.approx(16.0)  # a dominated setting changes nothing
    assert cost_at([0.5], [4.0], 0.6) == math.inf


def test_half_the_passes_for_the_same_boards() -> None:
    rng = np.random.default_rng(2)
    quality = (rng.random((3, 200)) < np.array([[0.5], [0.8], [0.95]])).astype(float)
    cost = np.broadcast_to(np.array([[4.0], [8.0], [16.0]]), (3, 200))
    found = cost_ratio(Swept(quality, cost / 2), Swept(quality, cost), quality[1], 0.01, draws=100)
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))
    hopeless = Swept(np.zeros((1, 200)), cost[:1])
    assert cost_ratio(Swept(quality, cost), hopeless, quality[1], 0.01, draws=20).value == 0.0
    assert cost_ratio(hopeless, Swept(quality, cost), quality[1], 0.01, draws=20).value == math.inf
    assert math.isnan(cost_ratio(hopeless, hopeless, quality[1], 0.01, draws=20).value)


def test_the_area_is_the_mean_quality_over_log_cost() -> None:
    assert area([0.5, 1.0], [1.0, 4.0], 1.0, 16.0) == pytest.approx(0.75)
    assert area([0.5, 1.0, 0.2], [1.0, 4.0, 8.0], 1.0, 16.0) == pytest.approx(0.75)
    assert area([1.0], [4.0], 1.0, 16.0) == pytest.approx(0.5)
    assert area([0.5, 0.25], [81.0, 81.0], 81.0, 81.0) == 0.5  # of one-by-one decoding alone


def record(rule: str, good: str, passes: list[int], verify: bool = False) -> dict:
    settings = {"rule": rule, "sampling": {"verify": verify}}
    mean = {"quality": good.count("1") / len(good), "passes": sum(passes) / len(passes)}
    return {"settings": settings, "each": {"good": good, "passes": passes, "rows": passes}} | mean


def test_comparisons_of_records() -> None:
    one, quick = record("sequential", "1110", [54, 52, 50, 56]), record("threshold", "1110", [20, 22, 24, 26])
    same = compare([one], [one], one)
    assert (same.value, same.low, same.high) == (1, 1, 1)
    assert compare([quick], [one], one).value == pytest.approx(92 / 212)
    found = areas([one, quick, record("threshold", "0000", [2, 2, 2, 2], verify=True)])
    assert [row["rule"] for row in found] == ["threshold", "sequential", "threshold verified"]
    assert [row["rule"] for row in areas([one])] == ["sequential"]
