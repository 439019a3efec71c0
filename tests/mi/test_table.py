from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from heads import SHAPE, low_rank, save_head, sudoku, tables, tiny
from pairmi.backbones.checkpoint import save_tensors
from pairmi.backbones.identity import identify
from pairmi.bench.exact import evaluate
from pairmi.commit import Sampling
from pairmi.counting import Counting
from pairmi.draw import Streams
from pairmi.loading import load, with_head, with_tables
from pairmi.mi.probed_tables import combined
from pairmi.mi.table import TableHead, exclusion
from pairmi.selectors.charge import Calibration
from pairmi.selectors.top_k import TopK
from pairmi.selectors.wrappers import Coupled
from pairmi.spec import rule
from pairmi.tasks.tables import random_table
from pairmi.training.table_labels import joined_walks, walked
from pairmi.training.tables import TableTraining, make_tables, predicted
from pairmi.types import PairmiError
from worlds import decode, generator, same_in_every_batch, tabular, unknown

MODEL = tiny()
CANVASES = torch.where(torch.rand(9, 8, generator=generator(1)) < 0.8, 4, 1)


def save(file: Path, head: TableHead, **changes: Any) -> Path:
    about = {"kind": "tables", "config": head.about(), "layers": [2], "backbone": identify(MODEL)}
    save_tensors(file, head.state_dict(), about | changes)
    return file


def after(head: TableHead, prefix: int, rows: slice = slice(None)) -> torch.Tensor:
    """What is said of the member of rank `prefix` when those before it took symbol 2, 3, 0, ..."""
    prediction = Counting(MODEL)(unknown(MODEL, 5)[rows])
    state = head.begin(prediction, torch.arange(8).roll(3).expand(5, -1)[rows], Counting(MODEL))
    for rank in range(prefix):
        one = torch.full_like(prediction.tokens[:, 0], rank)
        state = head.after(state, one, (one + 2) % 4, Counting(MODEL))
    return head.shifted(state, torch.full_like(prediction.tokens[:, 0], prefix))


def test_it_shifts_and_stays_a_distribution() -> None:
    said = [after(tables(), prefix) for prefix in range(4)]
    assert torch.equal(said[0], MODEL(unknown(MODEL, 5)).log_probs[:, 5])  # nothing was drawn: the marginal
    for one in said[1:]:
        assert one.exp().sum(1).tolist() == pytest.approx([1] * 5, abs=1e-5)
    assert all(float((a - b).abs().max()) > 0.01 for a, b in pairwise(said))


def test_a_fresh_one_is_minmax_of_its_first_channel() -> None:
    head = tables(fresh=True)
    torch.nn.init.normal_(head.message.weight)
    log_p = torch.randn(5, 4, generator=generator(0)).log_softmax(-1)
    said = torch.randn(5, 6, 4, 3, generator=generator(1))
    low, high = said.clamp_max(0).amin(1), said.clamp_min(0).amax(1)
    assert torch.allclose(head.moved(log_p, low, high, said.sum(1)), combined(log_p, low[..., 0], high[..., 0]), atol=1e-6)


def test_the_paths_are_what_exclusion_gives() -> None:
    log_probs = torch.tensor([[[0.5, 0.3, 0.2], [1 / 3, 1 / 3, 1 / 3]]]).log()
    give, keep = exclusion(log_probs, torch.tensor([[True, False]]))
    without = torch.tensor([0.5, 0.2]) / 0.7  # symbol 1 excluded
    assert (give[0, 0, 1] * keep[0, 0, [0, 2]]).tolist() == pytest.approx((without - torch.tensor([0.5, 0.2])).tolist())
    assert not keep[0, 1].any()  # what is known passes nothing on


def walks(model: Any, canvases: torch.Tensor, k: int = 4) -> Any:
    with torch.no_grad():
        return joined_walks(list(walked(model, canvases, TopK(k), Streams(0, torch.arange(len(canvases))), 8)))


def test_training_computes_what_decoding_does() -> None:
    """All prefixes at once by running pools, and one member after the other."""
    found = walks(MODEL, unknown(MODEL, 20))
    job = make_tables(MODEL, None, found, {"backbone": "none"}, TableTraining())
    torch.nn.init.normal_(job.head.shift.weight)
    torch.nn.init.normal_(job.head.message.weight)
    sets = torch.nonzero(found.order.amax(1) == 3)[:6, 0]
    batch = job.batch(sets, generator(0))
    assert not bool((batch.weight > 0)[:, 0, 0].any())  # the first is drawn, it is not to be learnt
    with torch.no_grad():
        whole = predicted(job.head, batch)
    prediction = Counting(MODEL)(found.tokens[sets].long())
    members = torch.where(found.order[sets] >= 0, found.order[sets], 99).argsort(1)[:, :4]
    state = job.head.begin(prediction, members, Counting(MODEL))
    for rank in range(1, 4):
        before, one = torch.full((len(sets),), rank - 1), torch.full((len(sets),), rank)
        symbol = found.filled[sets].long().gather(1, members[:, [rank - 1]])[:, 0]
        state = job.head.after(state, before, symbol, Counting(MODEL))
        assert torch.allclose(job.head.shifted(state, one), whole[:, rank - 1, rank], atol=5e-3)  # labels are in half precision
        truth = MODEL(torch.where(found.order[sets] < rank, found.filled[sets], found.tokens[sets]).long())
        where = members[:, rank]
        assert torch.allclose(batch.true[:, rank - 1, rank], truth.log_probs[torch.arange(len(sets)), where], atol=1e-2)


@pytest.mark.parametrize("verify", [False, True])
def test_no_row_depends_on_its_batch(verify: bool) -> None:
    selector, sampling = Coupled(TopK(5), tables()), Sampling(3, verify=verify)
    whole = same_in_every_batch(MODEL, CANVASES, selector, sampling)
    assert whole.probe_rows.tolist() == [0] * 9
    assert not torch.equal(whole.tokens, decode(MODEL, CANVASES, TopK(5), sampling).tokens)
    for prefix in (1, 3):
        assert torch.equal(after(tables(), prefix)[2:3], after(tables(), prefix, slice(2, 3)))


def test_verified_drafts_of_any_tables_reproduce_the_joint() -> None:
    """However wrong the tables are: here they are random, and read a world's marginals as its hidden states."""
    world = tabular(random_table(4, 3, generator(3), sparsity=0.4, sharpness=2.0))
    width = world(unknown(world)).hidden.shape[2]
    selector = Coupled(TopK(4), tables(width=width, symbols=3, length=4))
    assert evaluate(world, unknown(world)[0], selector, verify=True).kl < 1e-6  # the tables are in float32
    assert evaluate(world, unknown(world)[0], selector).kl > 0.01


def test_tables_come_back_as_they_were(tmp_path: Path) -> None:
    model = with_tables(MODEL, save(tmp_path / "tables.safetensors", tables()))
    assert rule("top-k:k=3,draw=coupled", model) == Coupled(TopK(3), model.tables)
    assert all(torch.equal(a, b) for a, b in zip(model.tables.parameters(), tables().parameters(), strict=True))
    backbone = save_tensors(tmp_path / "tiny.safetensors", MODEL.backbone.state_dict(), {"shape": vars(SHAPE)})
    assert backbone is None
    again = load(str(tmp_path / "tiny.safetensors"), tables=str(tmp_path / "tables.safetensors"))
    assert again.tables is not None


def test_tables_for_something_else_are_refused(tmp_path: Path) -> None:
    good = save(tmp_path / "tables.safetensors", tables())
    with pytest.raises(PairmiError, match=r"tables: .* was made for weights .*, but model 'tiny' has .*or train tables for this one"):
        with_tables(tiny(seed=1), good)
    with pytest.raises(PairmiError, match=r"holds no tables \(kind='head'\); train them with 'pairmi train tables'"):
        with_tables(MODEL, Path(save_head(tmp_path / "head.safetensors", low_rank(), MODEL)))
    with pytest.raises(PairmiError, match="do not fit its own description"):
        with_tables(MODEL, save(tmp_path / "bad.safetensors", tables(), config=tables(hidden=11).about()))
    headed = with_head(MODEL, save_head(tmp_path / "head.safetensors", low_rank(layers=2), MODEL, (1, 2)))
    with pytest.raises(PairmiError, match=r"read layers \[2\], the head of model 'tiny' reads \[1, 2\]; train both on the same layers"):
        with_tables(headed, good)
    with pytest.raises(PairmiError, match="TableHead: expected 8 positions, 4 symbols and hidden states of width 16, got 81, 9 and 8"):
        tables().begin(sudoku()(torch.full((1, 81), 9)), torch.zeros(1, 2, dtype=torch.long), Counting(MODEL))
    with pytest.raises(PairmiError, match="TableConfig: sizes must be >= 1"):
        replace(tables().config, paths=0)


def test_tables_bring_the_charges_for_what_they_leave(tmp_path: Path) -> None:
    file, charge = save(tmp_path / "tables.safetensors", tables()), Calibration(-3.0, ((-5.0, 0.0),) * 5, ((1.0,),) * 5)
    with pytest.raises(PairmiError, match=r"has no calibration for draw=coupled; make one with pairmi\.calibrate"):
        rule("mi-bound:mi=random,charge=calibrated,draw=coupled", with_tables(MODEL, file))
    save(file, tables(), calibration=charge.about())
    model = with_tables(MODEL, file)
    found = rule("mi-bound:mi=random,charge=calibrated,draw=coupled", model)
    assert isinstance(found, Coupled)
    assert found.rule.charge == charge
    assert not with_tables(model, save(file, tables())).residuals  # other tables leave something else
