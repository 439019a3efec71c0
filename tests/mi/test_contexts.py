import pytest
import torch

from pairmi.counting import Counting
from pairmi.info import pairs
from pairmi.loading import load
from pairmi.mi.maps import Way, averaged_mi, contexts
from pairmi.mi.probe import Probe
from pairmi.types import PairmiError

MODEL = load("sudoku4")
GRID = MODEL.vocab.encode("1234341221434321")


@pytest.mark.parametrize(("length", "blocks"), [(16, 4), (17, 3), (50, 8), (3, 6)])
def test_every_pair_is_masked_together_in_every_deal(length: int, blocks: int) -> None:
    one = contexts(length, blocks, 1, 0)
    assert bool((pairs(one).sum(0) + torch.eye(length) > 0).all())
    assert one.sum(1).max() <= 2 * -(-length // blocks)
    assert len(contexts(length, blocks, 3, 0)) == 3 * len(one)
    assert not torch.equal(contexts(50, blocks, 1, 1), contexts(50, blocks, 1, 0))


def test_it_is_the_mean_over_the_contexts_that_mask_both() -> None:
    masks, probe = contexts(16, 3, 2, 0), Probe(floor=0.0)
    counted = Counting(MODEL)
    found = averaged_mi(counted, GRID, masks, probe)
    total, times, rows = torch.zeros(16, 16), torch.zeros(16, 16), 0
    for mask in masks:
        meter = Counting(MODEL)
        canvas = GRID.masked_fill(mask, 4)[None]
        total += probe.measure(meter(canvas), meter).directed[0]
        times, rows = times + pairs(mask[None])[0], rows + meter.rows
    expected = total / times.clamp_min(1)
    torch.testing.assert_close(found.float(), expected)
    assert counted.rows == rows
    assert found.max() > 0.1


def test_fewer_than_two_blocks_are_refused() -> None:
    with pytest.raises(PairmiError, match=r"map\(blocks=1, deals=2\): at least two blocks and one deal"):
        Way(blocks=1)
