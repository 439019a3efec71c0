import pytest
import torch

from heads import tables, tiny
from pairmi.backbones.identity import identify
from pairmi.counting import Counting
from pairmi.draw import Streams
from pairmi.mi.table import TableHead
from pairmi.selectors.top_k import TopK
from pairmi.training.table_labels import joined_walks, walked
from pairmi.training.tables import FitTables, TableTraining, make_tables
from pairmi.types import PairmiError
from studies.table_doubt import Examples, examples, fit_doubt, judged, with_doubt
from worlds import generator, unknown

MODEL = tiny()


def job(boards: int = 40) -> FitTables:
    with torch.no_grad():
        walks = joined_walks(list(walked(MODEL, unknown(MODEL, boards), TopK(4), Streams(0, torch.arange(boards)), 8)))
    return make_tables(MODEL, None, walks, {"backbone": identify(MODEL)}, TableTraining())


def head() -> TableHead:
    return with_doubt(tables(), 6).requires_grad_(False)


def test_tables_stay_as_they_were() -> None:
    before, after = tables().state_dict(), head().state_dict()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    assert {name for name in after if name not in before} == {
        f"doubt.{n}.{part}" for n in ("first", "second", "nats") for part in ("weight", "bias")
    }
    with pytest.raises(PairmiError, match="train doubt: these tables have no network for it"):
        examples(job(), tables())


def test_training_reads_what_decoding_does() -> None:
    """The doubt of every member of some sets, all prefixes at once, and one member after the other."""
    made, mine = job(), head()
    assert mine.doubt is not None
    expected = mine.doubt(examples(made, mine).known)
    walks, found = made.walks, list[torch.Tensor]()
    for some in torch.cat([made.train, made.validation]).split(1):
        order = walks.order[some].long()
        members = torch.where(order >= 0, order, 99).argsort(1)[:, : int(made.size[some])]
        state = mine.begin(Counting(MODEL)(walks.tokens[some].long()), members, Counting(MODEL))
        for rank in range(1, members.shape[1]):
            before = torch.tensor([rank - 1])
            state = mine.after(state, before, walks.filled[some].long().gather(1, members[:, [rank - 1]])[:, 0], Counting(MODEL))
            found.append(mine.doubted(state, torch.tensor([rank]))[1])
    assert torch.allclose(torch.cat(found).sort().values, expected.sort().values, rtol=2e-2)  # labels are in half precision


def test_it_learns_who_loses() -> None:
    mine, rng = head(), generator(0)
    assert mine.doubt is not None
    mine.doubt.requires_grad_(True)
    known = torch.randn(4000, mine.doubt.first.in_features, generator=rng)
    nats = torch.exp(1.5 * known[:, 0] - 4) * torch.rand(4000, generator=rng) * 2
    found = Examples(known, nats, torch.arange(4000) % 4 == 0)
    start = judged(mine.doubt, found)
    fit_doubt(mine.doubt, found, epochs=20, batch=64)
    end = judged(mine.doubt, found)
    assert end["members"] == 1000
    assert end["lost"][-1] == pytest.approx(1)
    assert all(best <= lost + 1e-9 for best, lost in zip(end["least"], end["lost"], strict=True))
    assert end["lost"][2] < 0.6 * start["lost"][2]  # of the least doubted 80 %
    assert end["groups"][-1]["expected"] == pytest.approx(end["groups"][-1]["lost"], rel=0.5)
