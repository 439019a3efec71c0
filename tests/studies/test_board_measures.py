import pytest
import torch
from torch import Tensor

from oracle import Oracle
from pairmi.commit import Sampling
from pairmi.model import Model
from pairmi.tasks.sudoku.puzzles import paper_puzzles
from pairmi.types import Prediction
from studies.board_measures import measure
from studies.boards import Boards, make_boards


class Contrary(Oracle):
    """Believes in one digit as long as nothing is known, then in another."""

    def __init__(self) -> None:
        super().__init__(torch.zeros(81, dtype=torch.long), 1.0)

    def __call__(self, tokens: Tensor) -> Prediction:
        probs = torch.full((*tokens.shape, 9), 1e-3 / 8, dtype=torch.float64)
        likely = (tokens < 9).any(1).long()[:, None, None].expand(-1, 81, 1)
        return Prediction(tokens, probs.scatter(2, likely, 1 - 1e-3).log(), probs)


PUZZLES = paper_puzzles(10, 5)


def test_only_the_known_grid_is_solved() -> None:
    model = Model(Oracle(PUZZLES.solutions[3], 1.0))
    found = measure(model, Boards("puzzles", "test", PUZZLES.canvases, PUZZLES.solutions), "threshold", Sampling(greedy=True), batch=4)
    assert found["quality"] == 0.1
    assert found["low"] < 0.1 < found["high"]
    assert found["passes"] == found["rows"] == found["accepted"] == 1
    assert found["each"] == {"good": "0001000000", "passes": [1] * 10, "rows": [1] * 10}
    parts = sum(found[f"{part}_seconds"] for part in ("pass", "mi", "rule", "loop"))
    assert found["seconds_per_board"] == pytest.approx(parts)
    assert min(found["pass_seconds"], found["rule_seconds"], found["loop_seconds"]) > 0 == found["mi_seconds"]


def test_generated_boards_are_judged_and_told_apart() -> None:
    boards = make_boards("empty", 4)
    good = measure(Model(Oracle(PUZZLES.solutions[0], 1.0)), boards, "threshold:threshold=0.0", Sampling())
    assert (good["quality"], good["distinct"], good["valid"]) == (1.0, 1, 4)
    bad = measure(Model(Oracle(PUZZLES.solutions[0], 0.5)), boards, "threshold:threshold=0.0", Sampling(temperature=2.0))
    assert (bad["quality"], bad["distinct"]) == (0.0, 0)


def test_a_verified_draft_that_is_wrong_costs_acceptance() -> None:
    boards = make_boards("empty", 4)
    found = measure(Model(Contrary()), boards, "top-k:k=81", Sampling(verify=True))
    assert found["accepted"] < 1
    assert found["rows"] > found["passes"]
