from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from heads import sudoku, tiny
from pairmi.backbones.checkpoint import load_tensors, save_tensors
from pairmi.backbones.identity import identify
from pairmi.draw import Streams
from pairmi.loading import load, with_tables
from pairmi.mi.head import LowRankConfig, LowRankHead
from pairmi.mi.table import TableHead
from pairmi.selectors.top_k import TopK
from pairmi.tasks.catalogue import TASKS
from pairmi.training import table_labels
from pairmi.training.loop import export, fit, read_log
from pairmi.training.table_labels import Walks, joined_walks, make_walks, walked
from pairmi.training.tables import FitTables, TableTraining, divergence, make_tables
from pairmi.types import PairmiError
from studies.table_doubt import with_doubt
from worlds import unknown

MODEL = tiny()
SCHEDULE: dict[str, Any] = {"warmup": 5, "decay": 0.4, "save_every": 10, "evaluate_every": 20, "quiet": True}


def walks(boards: int = 64) -> Walks:
    with torch.no_grad():
        return joined_walks(list(walked(MODEL, unknown(MODEL, boards), TopK(4), Streams(0, torch.arange(boards)), 8)))


WALKS = walks()
ABOUT = {"backbone": identify(MODEL)}


def job(**changes: Any) -> FitTables:
    return make_tables(MODEL, (1, 2), WALKS, ABOUT, TableTraining(**{"pairs": 400, "others": 2} | changes))


def test_walks_hold_the_models_own_conditionals() -> None:
    assert len(WALKS.of) == 64 * 8  # a row a position
    assert (WALKS.order >= 0).sum() == 64 * 8
    for row in (0, 77, 300, 511):
        of, rank = int(WALKS.of[row]), int(WALKS.rank[row])
        drawn = (WALKS.order[of] >= 0) & (WALKS.order[of] < rank)
        prefix = torch.where(drawn, WALKS.filled[of], WALKS.tokens[of]).long()
        assert torch.allclose(MODEL(prefix[None]).log_probs[0], WALKS.log_probs[row].float(), atol=1e-2)
    assert set(WALKS.held_out(torch.arange(len(WALKS.tokens))).tolist()) == {False, True}
    assert joined_walks([WALKS, WALKS]).of[-1] == 2 * len(WALKS.tokens) - 1


def test_tables_learn_and_only_they(tmp_path: Path) -> None:
    before = {name: tensor.clone() for name, tensor in MODEL.backbone.state_dict().items()}
    one = job()
    start = one.evaluate()
    assert start["explained"] < 0.1
    fit(one, tmp_path, steps=120, **SCHEDULE)
    end = read_log(tmp_path / "log.jsonl")[-1]
    assert end["explained"] > 0.2
    assert end["marginals"] == pytest.approx(start["marginals"])
    assert all(torch.equal(tensor, before[name]) for name, tensor in MODEL.backbone.state_dict().items())


def test_a_killed_run_ends_with_the_same_bits(tmp_path: Path) -> None:
    whole = load_tensors(fit(job(), tmp_path / "whole", steps=20, **SCHEDULE))[0]

    class Killed(Exception):
        pass

    dying = job()
    advance = dying.advance

    def until(step: int, rate: float) -> float:
        if step == 15:
            raise Killed
        return advance(step, rate)

    dying.advance = until  # type: ignore[method-assign]
    with pytest.raises(Killed):
        fit(dying, tmp_path / "killed", steps=20, **SCHEDULE)
    again = load_tensors(fit(job(), tmp_path / "killed", steps=20, **SCHEDULE))[0]
    assert all(torch.equal(again[name], tensor) for name, tensor in whole.items())


def test_finished_tables_are_loaded_and_gone_on_from(tmp_path: Path) -> None:
    file = tmp_path / "tables.safetensors"
    export(fit(job(), tmp_path / "run", steps=3, **SCHEDULE), file, "tables", torch.float16)
    assert isinstance(with_tables(MODEL, file).tables, TableHead)
    more = make_tables(MODEL, (1, 2), WALKS, ABOUT, TableTraining(), str(file))
    assert more.about()["start"]
    assert torch.equal(more.head.pair.half(), load_tensors(file)[0]["pair"])
    wider = make_tables(MODEL, (0, 1, 2), WALKS, ABOUT, TableTraining(), str(file))  # of layer 0 they take nothing yet
    assert wider.evaluate() == pytest.approx(more.evaluate(), abs=1e-4)
    tensors, about = load_tensors(file)
    doubting = with_doubt(more.head, 4)
    taught = {**tensors, **{name: tensor for name, tensor in doubting.state_dict().items() if name.startswith("doubt.")}}
    save_tensors(file, taught, about | {"config": asdict(doubting.config)})
    again = make_tables(MODEL, (1, 2), WALKS, ABOUT, TableTraining(), str(file))  # other tables have other doubts
    assert again.evaluate() == more.evaluate()
    with pytest.raises(PairmiError, match=r"train tables: .* holds no tables of this shape; expected"):
        make_tables(MODEL, (2,), WALKS, ABOUT, TableTraining(), str(file))


def test_fresh_tables_begin_with_what_the_head_knows() -> None:
    head = LowRankHead(LowRankConfig(16, 4, 1, 8))
    headed = replace(MODEL, head=head)
    begun = make_tables(headed, None, WALKS, ABOUT, TableTraining())
    assert begun.about()["start"]
    assert torch.equal(begun.head.inner.weight, head.inner.weight)
    assert torch.equal(begun.head.project.weight, head.project.weight)
    assert begun.head.pair[:, :, :4].mean((0, 1)).abs().max() < 1e-5
    assert not make_tables(headed, (1,), WALKS, ABOUT, TableTraining()).about()["start"]  # of another layer it knows nothing
    assert not make_tables(replace(MODEL, head=LowRankHead(LowRankConfig(16, 4, 1, 8, rank=3))), None, WALKS, ABOUT, TableTraining()).start


def test_what_cannot_be_learnt_from_is_refused() -> None:
    few = replace(WALKS, sequence=torch.zeros_like(WALKS.sequence))
    with pytest.raises(PairmiError, match="leave nothing to train or to validate on; make more"):
        make_tables(MODEL, None, few, ABOUT, TableTraining())
    with pytest.raises(PairmiError, match="train tables: sudoku4 is no transformer of one length; take exact tables, draw=probed"):
        make_tables(load("sudoku4"), None, WALKS, ABOUT, TableTraining())


def test_walks_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = sudoku()
    head = LowRankHead(LowRankConfig(8, 9, 1, 81, inner=4, forms=1, rank=1, mixer=2)).requires_grad_(False)
    model = replace(model, task=TASKS["sudoku"], head=head)
    monkeypatch.setattr(table_labels, "KINDS", (("top-k:k=30", 3), ("top-k:k=4,by=random", 0)))
    monkeypatch.setattr(table_labels, "MASKED", 8)
    found, about = make_walks(model, tmp_path, 2)
    assert about == {"backbone": identify(model), "rules": ["top-k:k=30", "top-k:k=4,by=random"], "units": 2}
    assert len(found.of) == 3 * 81 + int((found.order[found.sequence >= 8] >= 0).sum())
    (tmp_path / "unit-0001.safetensors").unlink()
    again, _ = make_walks(model, tmp_path, 2)
    assert torch.equal(again.log_probs, found.log_probs)
    tensors, _ = load_tensors(tmp_path / "unit-0000.safetensors")
    save_tensors(tmp_path / "unit-0000.safetensors", tensors, {"backbone": "another"})
    with pytest.raises(PairmiError, match=r"unit-0000\.safetensors was made by weights another, not by"):
        make_walks(model, tmp_path, 1)
    with pytest.raises(PairmiError, match="train tables: tiny is no 9x9 Sudoku model with a head"):
        make_walks(MODEL, tmp_path, 1)


def test_the_loss_is_the_divergence() -> None:
    p, q = torch.tensor([0.5, 0.5, 0.0]).log(), torch.tensor([0.25, 0.5, 0.25]).log()
    assert float(divergence(p, q)) == pytest.approx(0.5 * torch.tensor(2.0).log().item())
