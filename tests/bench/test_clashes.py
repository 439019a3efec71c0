import re

import pytest

from pairmi.backbones.transformer import TransformerConfig
from pairmi.bench.boards import make_boards
from pairmi.bench.clashes import first_clashes
from pairmi.decoding import Sampling, decode
from pairmi.spec import Model, rule
from pairmi.tasks.sudoku.rules import peers
from pairmi.types import PairmiError
from rules import opinionated

MODEL: Model = opinionated(TransformerConfig(width=32, depth=1, heads=2))
BOARDS = make_boards("empty", 6)


def cell(name: str) -> int:
    row, column = map(int, re.findall(r"\d", name))
    return 9 * (row - 1) + column - 1


@pytest.mark.parametrize("spec", ["mi-bound:budget=2,mi=random", "mi-bound:budget=0,mi=random"])
def test_every_clash_is_one_and_every_wrong_board_has_one(spec: str) -> None:
    found = first_clashes(MODEL, BOARDS, spec, Sampling(seed=2))
    filled = decode(MODEL, BOARDS.canvases, rule(spec, MODEL), Sampling(seed=2)).tokens
    assert {clash["board"] for clash in found["each"]} == set((~BOARDS.good(filled)).nonzero()[:, 0].tolist())
    assert found["clashes"] == found["alone"] + found["prevented"] + found["not_prevented"] > 0
    for clash in found["each"]:
        first, second = map(cell, clash["cells"])
        assert peers()[first, second]
        assert filled[clash["board"], first] == filled[clash["board"], second] == clash["digit"] - 1
        assert (clash["canvas"][first] == clash["canvas"][second] == ".") == clash["together"]
        assert 0 < clash["probability"] <= 1


def test_exact_mutual_information_cannot_prevent_what_it_chose() -> None:
    found = first_clashes(MODEL, BOARDS, "mi-bound:budget=0.5,mi=probe", Sampling(seed=2))
    together = [clash for clash in found["each"] if clash["together"]]
    assert together
    assert all(clash["prevented"] is False and clash["exact"] == clash["predicted"] for clash in together)


def test_another_rule_is_refused() -> None:
    with pytest.raises(PairmiError, match=r"^clashes: expected a mi-bound rule, got 'eb'$"):
        first_clashes(MODEL, BOARDS, "eb", Sampling())
