import pytest

from sudoku_curve import STAGES, Stage, line, needed


def test_a_power_law_is_followed_to_where_it_reaches_a_share() -> None:
    lines = [{"PFLOP": spent, "minimal": 1 - 2 * spent**-0.5} for spent in (16.0, 100.0, 225.0)]
    assert needed(lines, 0.9) == pytest.approx(400)


def test_a_stage_costs_what_its_steps_with_each_depth_cost() -> None:
    shallow, deep = Stage("a", "", 10).flops(), Stage("b", "", 0, 10).flops()
    assert Stage("c", "", 10, 10).flops() == shallow + deep
    assert 1.9 < deep / shallow < 2.1
    spent = [stage.flops() for stage in STAGES]
    assert spent == sorted(spent)


def test_a_line_shows_what_was_solved_with_its_interval() -> None:
    one = {"quality": 0.5, "low": 0.4, "high": 0.6, "boards": 8}
    told = line({"settings": {"stage": {"name": "a", "source": "", "shallow": 1, "deep": 2}}, "minimal": one, "puzzles": one})
    assert (told["blocks"], told["steps"], told["of each"], told["minimal, solved"]) == (16, 3, 8, "0.500 [0.400, 0.600]")
