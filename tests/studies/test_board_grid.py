from collections import Counter

from pairmi.loading import load
from pairmi.spec import rule
from studies.board_grid import DRAFTS, GENERATING, SOLVING, TABLE_1

MODEL = load("sudoku")


def test_every_setting_of_the_published_grids_is_a_rule() -> None:
    for spec in (*TABLE_1, *SOLVING, *GENERATING, *DRAFTS):
        assert callable(rule(spec, MODEL))


def test_every_rule_has_as_many_tries_as_another() -> None:
    """`mi-bound` that charges or draws in another way counts as another rule."""
    for grid in (SOLVING, GENERATING, DRAFTS):
        assert len(set(grid)) == len(grid)
        ways = Counter((spec.partition(":")[0], "charge=" in spec, "draw=" in spec) for spec in grid)
        assert set(ways.values()) == {3}
