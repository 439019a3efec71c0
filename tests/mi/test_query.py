"""An estimate that is asked about some positions says of them what it says of all, and spends nothing on the others."""

from dataclasses import replace

import pytest
import torch

from heads import low_rank, pair_mlp, tiny
from pairmi.commit import Sampling
from pairmi.counting import Counting
from pairmi.draw import Streams
from pairmi.info import pairs
from pairmi.mi.probe import Probe
from pairmi.mi.proxies import Attended, Structural
from pairmi.selectors.mi_guided import MIGuided
from pairmi.types import PairMatrix, PairwiseMI, Prediction
from worlds import decode, generator

MODEL = tiny(attention=True)
TOKENS = torch.full((6, 8), 4).masked_fill(torch.rand(6, 8, generator=generator(1)) < 0.2, 0)
SOME = torch.rand(6, 8, generator=generator(2)) < 0.6
SOME[4], SOME[5, 1:] = False, False  # rows of which nothing is asked, or one position


ESTIMATES: list[PairwiseMI] = [
    low_rank(),
    low_rank(hops=2),
    pair_mlp(),
    Probe(floor=0.0),
    Probe(floor=0.3),
    Structural(torch.ones(8, 8)),
    Attended(),
]


@pytest.mark.parametrize("mi", ESTIMATES, ids=lambda mi: type(mi).__name__)
def test_the_pairs_that_are_asked_for_are_what_they_are_among_all(mi: PairwiseMI) -> None:
    prediction = MODEL(TOKENS)
    whole, some = (mi(p, MODEL, Streams(0, torch.arange(6))) for p in (prediction, replace(prediction, query=SOME)))
    within = pairs(SOME & prediction.masked)
    assert within.any()
    torch.testing.assert_close(some, torch.where(within, whole, 0), atol=1e-6, rtol=1e-5)


def test_rows_keep_what_was_asked() -> None:
    prediction = replace(MODEL(TOKENS), query=SOME)
    assert torch.equal(prediction.rows(torch.tensor([3, 1])).queried, prediction.queried[[3, 1]])
    assert torch.equal(prediction.queried, SOME & (TOKENS == 4))
    assert torch.equal(MODEL(TOKENS).queried, TOKENS == 4)


def test_guided_by_the_probe_only_what_could_be_chosen_is_probed() -> None:
    class Whole(Probe):
        """The probe that looks at everything, asked or not."""

        def __call__(self, prediction: Prediction, backbone: Counting, rng: Streams) -> PairMatrix:
            return super().__call__(replace(prediction, query=None), backbone, rng)

    budget, rows, filled = 0.9, [], []
    for probe in (Probe(floor=0.01), Whole(floor=0.01)):
        meter = Counting(MODEL)
        filled.append(decode(meter, TOKENS, MIGuided(probe, budget), Sampling(seed=3)).tokens)
        rows.append(meter.rows)
    assert torch.equal(*filled)
    assert rows[0] < 0.9 * rows[1]
