import pytest
import torch

from pairmi.commit import Sampling
from pairmi.decoding import iter_decode
from pairmi.loading import load
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.selectors.ranking import ranked, take
from pairmi.selectors.wrappers import OneAtATime
from pairmi.spec import rule
from pairmi.types import Reason, Selection, Turn
from rules import reckless, singly
from studies.stopwatch import Stopwatch, watched
from worlds import decode

MODEL = load("sudoku4")
EMPTY = torch.full((6, 16), 4)


@pytest.mark.parametrize("name", CATALOGUE)
def test_one_position_a_pass_whatever_the_rule_chose(name: str) -> None:
    steps = list(iter_decode(MODEL, EMPTY, rule(singly(reckless(name)), MODEL), Sampling(seed=3)))
    assert steps[-1].passes.tolist() == [16] * 6
    assert all((step.committed.sum(1) == 1).all() for step in steps)


def test_a_choice_is_filled_in_its_order_before_the_next_one_counts() -> None:
    """A rule that prefers the last positions at even passes and the first at odd ones is heard at every third pass only."""

    class Fickle:
        asked = 0

        def __call__(self, turn: Turn) -> Selection:
            self.asked += 1
            score = torch.arange(16.0) if self.asked % 2 else -torch.arange(16.0)
            masked = turn.prediction.masked
            return take(ranked(score.expand(masked.shape), masked), torch.tensor([3]), masked, Reason.OUTRANKED, score.expand(masked.shape))

    filled = [int(step.committed[0].nonzero()) for step in iter_decode(MODEL, EMPTY[:1], OneAtATime(Fickle()), Sampling())]
    assert filled[:9] == [15, 14, 13, 0, 1, 2, 12, 11, 10]


def test_a_rule_remembers_only_what_counted() -> None:
    """MaskGIT follows a schedule of passes: four choices, however many passes they take to fill."""
    found = iter_decode(MODEL, EMPTY[:2], rule("maskgit:steps=4,noise=0", MODEL), Sampling(seed=2))
    sizes = [int(step.drafted[0]) for step in found]
    chosen: list[int] = []

    class Watched:
        inner = rule("maskgit:steps=4,noise=0", MODEL)

        def __call__(self, turn: Turn) -> Selection:
            choice = self.inner(turn)
            chosen.append(int(choice.chosen[0].sum()))
            return choice

    decode(MODEL, EMPTY[:1], OneAtATime(Watched()), Sampling(seed=2))
    starts = [sum(sizes[:n]) for n in range(len(sizes))]
    assert [chosen[start] for start in starts] == sizes


def test_every_board_of_an_exact_world_is_valid_singly_but_not_at_once() -> None:
    valid = {tuple(row.tolist()) for row in MODEL.backbone.support}
    for spec, all_valid in (("top-k:k=16", False), ("top-k:k=16,commit=one", True)):
        found = decode(MODEL, EMPTY, rule(spec, MODEL), Sampling(seed=1)).tokens
        assert all(tuple(row.tolist()) in valid for row in found) == all_valid


def test_the_time_of_an_estimate_inside_is_told_apart() -> None:
    watch = Stopwatch()
    decode(MODEL, EMPTY[:1], watched(rule("mi-guided:mi=probe,commit=one", MODEL), watch), Sampling())
    assert watch.seconds["mi"] > 0
