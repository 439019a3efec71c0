import pytest
import torch

from pairmi.tasks.sudoku.puzzles import complete_grids
from pairmi.tasks.sudoku.symmetry import random_symmetries, transform
from studies.uniformity import PAIRS, chi_square, pair_probability, tables, worst_fit

GRIDS = transform(complete_grids(4000, 5), *random_symmetries(4000, torch.Generator().manual_seed(1)))


def test_the_laws_of_pairs_are_laws_and_those_of_random_grids() -> None:
    for first, second in PAIRS:
        law = pair_probability(first, second)
        assert float(law.sum()) == pytest.approx(1)
        assert torch.allclose(law.sum(0), torch.full((9,), 1 / 9, dtype=torch.float64))
        agree = float((GRIDS[:, first] == GRIDS[:, second]).double().mean())
        assert agree == pytest.approx(float(law.diagonal().sum()), abs=0.025)


def test_symmetric_grids_pass_and_a_preference_is_found() -> None:
    assert len(tables(GRIDS)) == 81 + len(PAIRS)
    assert worst_fit(GRIDS)[1] > 0.01
    fond = torch.where((GRIDS[:, 40] == 4)[:, None], GRIDS[0], GRIDS)  # one board instead of every ninth
    assert worst_fit(fond)[1] < 1e-6


def test_chi_square_names_the_worst_table() -> None:
    found = chi_square({"fair": ([10.0, 10.0, 10.0], [10.0, 10.0, 10.0]), "loaded": ([30.0, 0.0, 0.0], [10.0, 10.0, 10.0])})
    assert found[0] == "loaded"
    assert found[1] < 1e-10
