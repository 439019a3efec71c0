"""What docs/sampled.md is made of, in small."""

import runpy
from pathlib import Path

import pytest
import torch

PAGE = runpy.run_path(str(Path(__file__).parents[1] / "experiments" / "sampled.py"))
FLAT = torch.full((4,), 0.25, dtype=torch.float64)


def test_variances_are_those_of_the_definition() -> None:
    f = torch.tensor([[1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]], dtype=torch.float64)
    assert PAGE["strata_variance"](FLAT, f, [2]).tolist() == pytest.approx([0.125, 0.125])
    assert PAGE["strata_variance"](FLAT, f, [1, 1]).tolist() == pytest.approx([0.125, 0.0])
    assert PAGE["systematic_variance"](FLAT, f, 2).tolist() == pytest.approx([0.25, 0.0], abs=1e-3)  # worse than plain draws, and better


def test_a_control_that_knows_everything_leaves_nothing() -> None:
    factor = torch.tensor([0.5, 2.0, 1.0, 0.5], dtype=torch.float64)
    tables = [(FLAT, mi * factor.expand(3, -1)) for mi in (0.3, 0.7)]
    left = PAGE["controlled"](tables)
    assert left["a factor for each symbol"] == pytest.approx(0, abs=1e-12)
    assert left["surprise of the symbol"] == pytest.approx(1)  # all symbols are equally surprising


def test_the_mean_over_seeds_and_the_rows_are_told() -> None:
    backbone = PAGE["Remembering"](PAGE["Large"](size=20))
    found = PAGE["unbiased"](backbone, torch.tensor([[20, 20, 20]]), "tv", 6, 300)
    assert found["rows"] == found["1 + N K"] == 19
    assert found["largest z"] < 4
    assert 0.8 < found["estimated / true variance"] < 1.2
    assert found["1.96 errors cover"] <= found["Student's 95 % cover"]
