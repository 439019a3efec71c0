"""Labels from draws: unbiased, marked as such, and good to learn from beside exact ones."""

from dataclasses import fields
from pathlib import Path

import pytest
import torch

from heads import RandomStates, labelled, low_rank, tiny
from pairmi.cli import main
from pairmi.mi.probe import Probe
from pairmi.mi.sampled import SampledProbe
from pairmi.store import Labels, joined_labels, read_shard, read_store, read_stores, shard_file, write_shard
from pairmi.training.distill import Distill, DistillConfig
from pairmi.training.labels import SURE, Effort, label, make_labels
from pairmi.training.states import distinct
from pairmi.types import PairmiError

MODEL = tiny()


@pytest.mark.parametrize(("draws", "positions"), [(1, 2), (2, 0)])
def test_drawn_labels_have_no_bias_and_cost_what_they_say(draws: int, positions: int) -> None:
    states = distinct(RandomStates().draw(MODEL, 0, 0, 1500), 1500)  # one that comes twice is drawn alike
    drawn, exact = label(MODEL, states, SampledProbe("kl", draws), Effort(positions)), label(MODEL, states, Probe("kl", 0.0))
    known = drawn.known(MODEL.vocab.size)
    off = (drawn.mi - exact.mi)[known].double()
    assert off.abs().max() > 0.01
    unsure = ((drawn.tokens == MODEL.vocab.size) & (drawn.entropies > SURE)).sum(1)
    assert torch.equal(drawn.rows, 1 + draws * unsure.clamp_max(positions or 8))
    mine = torch.stack([torch.where(known, x, 0).sum(1) for x in (drawn.mi, exact.mi)]).double()
    apart = mine[0] - mine[1]
    assert abs(float(apart.mean())) < 4 * float(apart.std()) / len(apart) ** 0.5
    assert set(drawn.draws.tolist()) == {draws}
    assert set(exact.draws.tolist()) == {0}
    assert (drawn.bound == torch.inf).all()


def test_they_depend_on_the_state_alone() -> None:
    states = RandomStates().draw(MODEL, 0, 0, 40)
    whole = label(MODEL, states, SampledProbe("tv", 2), Effort(3))
    apart = joined_labels([label(MODEL, states[n : n + 7], SampledProbe("tv", 2), Effort(3)) for n in range(0, 40, 7)])
    for name in ("mi", "rows", "entropies"):
        torch.testing.assert_close(getattr(whole, name), getattr(apart, name), rtol=0, atol=0, equal_nan=True)


def test_a_store_says_what_its_labels_are(tmp_path: Path) -> None:
    make_labels(MODEL, RandomStates(), tmp_path / "drawn", 8, probe=SampledProbe("kl", 2), shard=4, quiet=True)
    make_labels(MODEL, RandomStates(), tmp_path / "exact", 8, probe=Probe("kl", 0.0), shard=4, seed=1, quiet=True)
    found, settings = read_store(tmp_path / "drawn")
    assert (settings["draws"], settings["form"], "floor" in settings) == (2, "kl", False)
    assert found.draws.tolist() == [2] * 8
    both, settings = read_stores([tmp_path / "drawn", tmp_path / "exact"])
    assert both.draws.tolist() == [2] * 8 + [0] * 8
    assert settings["beside"][0]["floor"] == 0
    with pytest.raises(PairmiError, match=r"made by other weights or settings \(different: draws\)"):
        make_labels(MODEL, RandomStates(), tmp_path / "drawn", 8, probe=SampledProbe("kl", 3), shard=4, quiet=True)
    make_labels(tiny(seed=1), RandomStates(), tmp_path / "other", 4, probe=SampledProbe("kl", 2), shard=4, quiet=True)
    with pytest.raises(PairmiError, match="were made by different weights; label again with one backbone"):
        read_stores([tmp_path / "drawn", tmp_path / "other"])


def test_shards_of_before_there_were_draws_are_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = labelled(MODEL, 4)
    old = tuple(field for field in fields(Labels) if field.name != "draws")
    monkeypatch.setattr("pairmi.store.fields", lambda _: old)
    write_shard(shard_file(tmp_path, 0), found, {})
    monkeypatch.undo()
    assert read_shard(shard_file(tmp_path, 0))[0].draws.tolist() == [0] * 4


def test_a_head_that_learns_from_draws_is_validated_on_what_is_exact() -> None:
    states = RandomStates().draw(MODEL, 0, 0, 300)
    drawn, settings = label(MODEL, states, SampledProbe("kl", 1)), labelled(MODEL, 2)[1]
    exact = label(MODEL, RandomStates().draw(MODEL, 9, 0, 200), Probe("kl", 0.0))
    job = Distill(MODEL, low_rank(), [2], joined_labels([drawn, exact]), settings, DistillConfig(batch=16))
    assert (job.held_out.draws == 0).all()
    assert (job.train.draws == 1).any()
    before = job.evaluate()["r2"]
    for step in range(150):
        job.advance(step, 1.0)
    assert job.evaluate()["r2"] > max(0.1, before)


def test_pruning_cannot_be_judged_by_drawn_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "labels")
    assert main(["labels", "--backbone", "sudoku", "--out", out, "--states", "2", "--shard", "2", "--draws", "1", "--positions", "2"]) == 0
    assert main(["bench", "probe", "--backbone", "sudoku", "--labels", out]) == 2
    assert "holds labels from draws, of which nothing was pruned; give exact ones" in capsys.readouterr().err
