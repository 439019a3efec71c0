from oracle import Oracle
from pairmi.model import Model
from pairmi.tasks.sudoku.puzzles import paper_puzzles
from studies.sudoku_beliefs import calibration, histogram

PUZZLES = paper_puzzles(10, 5)


def test_the_paper_puzzles_have_its_mean_number_of_givens() -> None:
    assert float(PUZZLES.givens.double().mean()) == 27.1
    assert histogram(PUZZLES.givens) == "25: 1, 26: 2, 27: 3, 28: 3, 29: 1"


def test_calibration_is_the_distance_between_belief_and_truth() -> None:
    right = calibration(Model(Oracle(PUZZLES.solutions[0], 0.7)), PUZZLES.canvases[:1], PUZZLES.solutions[:1])
    assert abs(right["ece"] - 0.3) < 1e-9  # always right, 70 % sure
    assert right["cells"] == int((PUZZLES.canvases[0] == 9).sum())
    assert right["accuracy"] == [1.0]
    perfect = calibration(Model(Oracle(PUZZLES.solutions[0], 1.0)), PUZZLES.canvases[:1], PUZZLES.solutions[:1])
    assert perfect["ece"] == 0
