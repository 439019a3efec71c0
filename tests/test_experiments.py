import ast
import runpy
from pathlib import Path

EXPERIMENTS = Path(__file__).parents[1] / "experiments"


def test_no_schedule_decodes_the_4x4_world_without_loss_in_fewer_than_four_passes() -> None:
    search = runpy.run_path(str(EXPERIMENTS / "optimal_sudoku4.py"))
    start = search["canonical"](search["np"].ones(len(search["GRIDS"]), dtype=bool))
    assert search["passes_left"](start) == 4


def test_every_experiment_says_how_it_is_run() -> None:
    for file in EXPERIMENTS.glob("*.py"):
        assert f"python experiments/{file.name}" in (ast.get_docstring(ast.parse(file.read_text())) or "")


def test_what_was_solved_is_told_by_difficulty() -> None:
    experiment = runpy.run_path(str(EXPERIMENTS / "sudoku_model.py"))
    puzzles = experiment["minimal_puzzles"](16, 1)
    table = {line["needs"]: line for line in experiment["by_difficulty"](puzzles, "1110" * 3 + "1111")}
    assert {name: line["puzzles"] for name, line in table.items() if "," not in name} == {
        "singles": 4, "locked": 4, "subsets": 4, "beyond": 4,
    }  # fmt: skip
    assert [table[name]["solved"] for name in ("singles", "locked", "subsets", "beyond")] == [1, 1, 1, 0.25]
    assert sum(line["puzzles"] for name, line in table.items() if "guesses" in name) == 4
