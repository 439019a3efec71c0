import itertools
import re
from dataclasses import dataclass

import pytest
import torch

from pairmi.backbones.transformer import TransformerConfig
from pairmi.commit import Sampling
from pairmi.loading import load
from pairmi.model import Model
from pairmi.spec import rule
from pairmi.tasks.sudoku.puzzles import complete_grids
from pairmi.types import Backbone, PairMatrix, PairmiError, Prediction, RowStreams
from rules import opinionated
from studies.boards import Boards, make_boards
from studies.failure_analysis import alive, failure_analysis
from worlds import decode

UNTRAINED: Model = opinionated(TransformerConfig(width=32, depth=1, heads=2))
EMPTY = make_boards("empty", 5)


@dataclass(frozen=True)
class Nothing:
    """A head that sees no dependence anywhere."""

    def __call__(self, prediction: Prediction, backbone: Backbone, rng: RowStreams) -> PairMatrix:
        return torch.zeros(*prediction.tokens.shape, prediction.tokens.shape[1])


def cell(name: str) -> int:
    row, column = map(int, re.findall(r"\d", name))
    return 9 * (row - 1) + column - 1


@pytest.mark.parametrize("spec", ["mi-bound:budget=2,mi=random", "mi-bound:budget=0,mi=random"])
def test_every_wrong_board_had_a_solution_before_and_none_with_the_guilty_cells(spec: str) -> None:
    found = failure_analysis(UNTRAINED, EMPTY, spec, Sampling(seed=2))
    filled = decode(UNTRAINED, EMPTY.canvases, rule(spec, UNTRAINED), Sampling(seed=2)).tokens
    assert {failure["board"] for failure in found["each"]} == set((~EMPTY.good(filled)).nonzero()[:, 0].tolist())
    assert found["wrong"] == found["one"] + found["saved"] + found["not_saved"] > 0
    for failure in found["each"]:
        canvas = UNTRAINED.vocab.encode(failure["canvas"])
        assert alive(canvas)
        if failure["cells"]:
            guilty = [cell(name) for name in failure["cells"]]
            canvas[guilty] = torch.tensor(failure["digits"]) - 1
            assert not alive(canvas)
            assert torch.equal(filled[failure["board"], guilty], canvas[guilty])


def rectangle() -> torch.Tensor:
    """A grid with four open cells that hold two digits crosswise, in two boxes: two solutions, and no cell alone is wrong."""
    for grid in complete_grids(200, 0):
        rows = grid.view(9, 9)
        for upper, left, right in itertools.product((0, 3, 6), range(9), range(9)):
            lower = upper + 1
            if left // 3 != right // 3 and rows[upper, left] == rows[lower, right] and rows[upper, right] == rows[lower, left]:
                canvas = rows.clone()
                canvas[upper : lower + 1, [left, right]] = 9
                return canvas.flatten()
    raise AssertionError("no such grid")


def test_a_blind_head_is_found_out() -> None:
    boards = Boards("open", "test", rectangle().repeat(12, 1))
    found = failure_analysis(Model(load("sudoku").backbone, head=Nothing()), boards, "mi-bound:budget=0.05", Sampling(seed=1))
    assert found["wrong"] == found["saved"] > 0
    assert all(len(failure["cells"]) == 2 and failure["filled"] == 4 and failure["predicted"] == 0 for failure in found["each"])
    assert all(failure["exact"] > 0.3 for failure in found["each"])  # almost log 2


def test_exact_information_has_no_excuse() -> None:
    found = failure_analysis(UNTRAINED, EMPTY, "mi-bound:budget=0.5,mi=probe,floor=0", Sampling(seed=2))
    assert found["not_saved"] > 0
    assert found["saved"] == 0


WAYS = [("eb", Sampling()), ("mi-bound:commit=one", Sampling()), ("mi-bound", Sampling(verify=True))]


@pytest.mark.parametrize(("spec", "sampling"), WAYS)
def test_other_ways_to_decode_are_refused(spec: str, sampling: Sampling) -> None:
    with pytest.raises(PairmiError, match=r"^failure analysis: expected mi-bound, filled at once and not verified, got"):
        failure_analysis(UNTRAINED, EMPTY, spec, sampling)
