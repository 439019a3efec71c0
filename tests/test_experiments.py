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
