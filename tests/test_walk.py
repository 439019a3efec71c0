"""Pricing row by row: whose probes are whose, what a rule may not do, and ways of drawing at their edges."""

from dataclasses import replace

import pytest
import torch

import pairmi
from heads import tables, tiny
from pairmi.loading import load
from pairmi.selectors.top_k import TopK
from pairmi.types import PairmiError, Selection, Turn


def test_exact_tables_in_blocks_cost_the_same_in_every_batch() -> None:
    """Each probe stands in the canvas that it is for, also when other rows are full or gone."""
    model, canvases, spec = load("markov"), ["......", "1.....", "..2...", "......"], "eb:budget=1,block=3,draw=probed"
    whole = pairmi.price(model, canvases, spec, sequences=12)
    for size in (1, 5):
        assert torch.equal(whole.each, pairmi.price(model, canvases, spec, sequences=12, batch_size=size).each)
    assert whole.probe_rows > 0


def test_who_draws_from_marginals_pays_for_no_probe() -> None:
    plain, probed = pairmi.price(load("markov"), "......", ["eb:budget=1", "eb:budget=1,draw=probed"])
    assert plain.probe_rows == 0 < probed.probe_rows


def test_an_order_with_gaps_is_refused() -> None:
    class Gaps:
        def __call__(self, turn: Turn) -> Selection:
            found = TopK(2)(turn)
            return replace(found, order=2 * found.order)

    with pytest.raises(PairmiError, match=r"^Gaps: must choose at least one unknown position, no known one, ordered 0, 1, \.\.\."):
        pairmi.price(load("markov"), "1.....", Gaps())


def test_learnt_tables_give_the_same_bits_alone() -> None:
    model, boards = load("sudoku"), ["1" + "." * 80, "2" + "." * 80]
    prices = [pairmi.price(model, boards, "mi-bound:draw=coupled,budget=0.5", sequences=2, batch_size=size).each for size in (2, 1)]
    assert torch.equal(*prices)


def test_a_set_that_fills_the_whole_canvas_is_priced_where_members_may_wait() -> None:
    model = replace(tiny(), tables=tables(doubt=4))
    assert pairmi.price(model, torch.full((8,), 4), "top-k:k=8,draw=coupled,defer=1000").passes == 1


def test_a_price_is_shown_in_a_line() -> None:
    found = pairmi.price(load("markov"), "......", "eb")
    assert repr(found) == f"Price({found})"
