from pairmi.loading import load
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import rule
from studies.board_grid import TABLE_1, board_settings

MODEL = load("sudoku")


def test_every_setting_of_the_published_grids_is_a_rule() -> None:
    specs = [*TABLE_1, *board_settings()]
    assert {spec.partition(":")[0] for spec in specs} == set(CATALOGUE)
    for spec in specs:
        assert callable(rule(spec, MODEL))
