import itertools

import pytest
import torch
from scipy import stats

from pairmi.bench.fidelity import auroc, calibration, mae, r2, scale_to, spearman

RNG = torch.Generator().manual_seed(0)
A, B = torch.rand(200, generator=RNG), (torch.rand(200, generator=RNG) * 5).round()


def test_against_scipy() -> None:
    assert spearman(A, B) == pytest.approx(stats.spearmanr(A, B).statistic)
    positive = A > 0.6
    wins = stats.mannwhitneyu(B[positive], B[~positive]).statistic
    assert auroc(B, positive) == pytest.approx(wins / (int(positive.sum()) * int((~positive).sum())))


def test_plain_cases() -> None:
    assert r2(B, B) == 1
    assert r2(torch.full_like(B, float(B.mean())), B) == pytest.approx(0, abs=1e-6)
    assert r2(-B, B) < 0
    assert mae(B + 0.5, B) == pytest.approx(0.5)
    assert spearman(torch.ones(5), torch.arange(5.0)) == 0
    assert auroc(A, torch.ones(200, dtype=torch.bool)) is None
    assert auroc(torch.ones(200), A > 0.5) == 0.5
    assert scale_to(B / 3, B) == pytest.approx(3)


def test_calibration_bins_have_equally_many_pairs() -> None:
    curve = calibration(A, A.square(), bins=10)
    assert [point["pairs"] for point in curve] == [20] * 10
    assert all(first["predicted"] < second["predicted"] for first, second in itertools.pairwise(curve))
    assert all(point["true"] <= point["predicted"] for point in curve)
    assert len(calibration(A[:3], A[:3], bins=10)) == 3
