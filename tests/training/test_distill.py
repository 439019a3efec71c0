from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from heads import labelled, sudoku, tiny
from pairmi.backbones.checkpoint import load_tensors, save_tensors
from pairmi.backbones.identity import identify
from pairmi.cli import main
from pairmi.draw import Streams
from pairmi.info import pairs
from pairmi.loading import with_head
from pairmi.store import Labels, shard_file, square, triangle, write_shard
from pairmi.tasks.sudoku.symmetry import random_symmetries, transform_pairs
from pairmi.training.distill import Distill, DistillConfig, batch_of, export_head, make_head, moved, started
from pairmi.training.loop import Job, fit, read_log
from pairmi.training.optimizer import Rates
from pairmi.types import PairmiError

MODEL = tiny()
LABELS, SETTINGS = labelled(MODEL, 200)
SIZES = {"inner": 16, "forms": 4, "rank": 4, "mixer": 8}
SCHEDULE: dict[str, Any] = {"steps": 30, "warmup": 3, "decay": 0.4, "save_every": 4, "evaluate_every": 10, "quiet": True}


def job(kind: str = "low-rank", layers: tuple[int, ...] = (2,), **changes: Any) -> Distill:
    head = make_head(kind, MODEL, layers, SIZES, 0)
    return Distill(MODEL, head, layers, LABELS, SETTINGS, DistillConfig(**{"batch": 16, "rates": Rates(adam=5e-3)} | changes))


def bits(file: Path) -> dict[str, torch.Tensor]:
    return load_tensors(file)[0]


@pytest.mark.parametrize(("kind", "layers"), [("low-rank", (2,)), ("low-rank", (0, 1)), ("pair-mlp", (1, 2))])
def test_a_head_learns_and_only_the_head(kind: str, layers: tuple[int, ...]) -> None:
    before = {name: tensor.clone() for name, tensor in MODEL.backbone.state_dict().items()}
    one = job(kind, layers)
    assert isinstance(one, Job)
    start = one.evaluate()["r2"]
    for step in range(40):
        one.advance(step, 1.0)
    assert one.evaluate()["r2"] > max(start, 0) + 0.1
    assert all(torch.equal(tensor, before[name]) for name, tensor in MODEL.backbone.state_dict().items())


@pytest.mark.parametrize("loss", ["balanced", "root"])
def test_other_losses_learn_too(loss: str) -> None:
    one = job(loss=loss)
    losses = [one.advance(step, 1.0) for step in range(30)]
    assert sum(losses[-5:]) < sum(losses[:5])


def test_a_run_that_stops_anywhere_ends_bit_identical(tmp_path: Path) -> None:
    whole = bits(fit(job(), tmp_path / "whole", **SCHEDULE))
    for moment in (1, 17, 28):
        stopped = job()
        advance = stopped.advance

        def fail(step: int, rate: float, stop: int = moment, go: Any = advance) -> float:
            if step == stop:
                raise KeyboardInterrupt
            return float(go(step, rate))

        stopped.advance = fail
        with pytest.raises(KeyboardInterrupt):
            fit(stopped, tmp_path / str(moment), **SCHEDULE)
        again = bits(fit(job(), tmp_path / str(moment), **SCHEDULE))
        assert whole.keys() == again.keys()
        assert all(torch.equal(whole[name], again[name]) for name in whole)
    assert {"r2", "mae"} <= read_log(tmp_path / "whole" / "log.jsonl")[-1].keys()


def test_another_configuration_is_refused(tmp_path: Path) -> None:
    fit(job(), tmp_path, **SCHEDULE | {"steps": 4})
    for other, names in ((job(loss="root"), "training"), (job(layers=(1,)), "layers")):
        with pytest.raises(PairmiError, match=rf"comes from another configuration \(different: {names}\)"):
            fit(other, tmp_path, **SCHEDULE | {"steps": 4})


def test_an_exported_head_is_loaded_with_its_layers(tmp_path: Path) -> None:
    one = job(layers=(0, 2))
    export_head(fit(one, tmp_path / "run", **SCHEDULE | {"steps": 4}), tmp_path / "head.safetensors")
    model = with_head(MODEL, str(tmp_path / "head.safetensors"))
    assert model.backbone.layers == (0, 2)
    prediction = model(LABELS.tokens[:5])
    assert torch.equal(
        model.head(prediction, model, Streams(0, torch.arange(5))), one.head.estimate(prediction.rows(torch.arange(5))).detach().double()
    )
    about = load_tensors(tmp_path / "head.safetensors")[1]
    assert about["labels"]["count"] == 200
    assert about["provenance"]["torch"] == torch.__version__


def test_every_state_comes_once_in_a_round_in_a_new_order() -> None:
    seen = torch.cat([batch_of(10, 4, step, 0) for step in range(5)])
    assert sorted(seen[:10].tolist()) == sorted(seen[10:].tolist()) == list(range(10))
    assert seen[:10].tolist() != seen[10:].tolist()
    assert torch.equal(batch_of(10, 4, 3, 0), batch_of(10, 4, 3, 0))


def test_no_test_or_validation_grid_is_trained_on() -> None:
    one = job()
    others = {*LABELS.split("test").grid, *LABELS.split("validation").grid}
    assert others
    assert not {*one.train.grid} & others
    assert {*one.held_out.grid} <= {*LABELS.split("validation").grid}


def test_augmentation_moves_labels_with_their_cells() -> None:
    rng = torch.Generator().manual_seed(0)
    source, _ = random_symmetries(2, rng)
    values = torch.rand(2, 3240)
    matrix = square(values, 81)
    moved = transform_pairs(matrix, source)
    for i, j in ((0, 1), (5, 80), (40, 40)):
        assert float(moved[1, i, j]) == float(matrix[1, source[1, i], source[1, j]])
    assert torch.equal(triangle(moved).sort(1).values, values.sort(1).values)


def sudoku_labels(count: int = 60) -> tuple[Any, Any, Any]:
    """Labels that nobody measured, for a model that nobody trained."""
    model = sudoku()
    rng = torch.Generator().manual_seed(1)
    tokens = torch.where(torch.rand(count, 81, generator=rng) < 0.2, 9, torch.randint(9, (count, 81), generator=rng))
    small, settings = labelled(MODEL, count)
    made = replace(small, tokens=tokens, mi=torch.rand(count, 3240, generator=rng), entropies=torch.zeros(count, 81))
    return model, made, settings | {"backbone": identify(model), "symbols": "123456789", "length": 81}


def test_moved_copies_are_more_of_the_same() -> None:
    model, labels, settings = sudoku_labels()
    jobs = [
        Distill(model, make_head("low-rank", model, [1], SIZES, 0), [1], labels, settings, DistillConfig(batch=4, augment=2))
        for _ in range(2)
    ]
    one, plain = jobs[0].train, labels.split("train")
    assert len(one) == 3 * len(plain)
    assert torch.equal(one.tokens[: len(plain)], plain.tokens)
    assert torch.equal((one.tokens == 9).sum(1), (plain.tokens == 9).sum(1).repeat(3))
    assert torch.equal(one.mi.sort(1).values, plain.mi.repeat(3, 1).sort(1).values)
    assert jobs[0].advance(0, 1.0) == jobs[1].advance(0, 1.0)


def test_moving_takes_everything_along() -> None:
    """A pair of masked cells keeps its value, wherever it goes."""
    _, labels, _ = sudoku_labels(20)
    marked = replace(labels, entropies=(labels.tokens == 9).float(), mi=triangle(pairs(labels.tokens == 9)).float())
    found = moved(marked, torch.Generator().manual_seed(3))
    assert not torch.equal(found.tokens, marked.tokens)
    assert torch.equal(found.entropies, (found.tokens == 9).float())
    assert torch.equal(found.mi, triangle(pairs(found.tokens == 9)).float())


def test_the_command_trains_and_writes_a_head(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, labels, settings = sudoku_labels()
    backbone = str(tmp_path / "b.safetensors")
    save_tensors(Path(backbone), model.backbone.state_dict(), {"shape": asdict(model.backbone.config)})
    write_shard(shard_file(tmp_path / "labels", 0), labels, {"settings": settings, "provenance": {}})
    common = ["train", "head", "--backbone", backbone, "--run", str(tmp_path / "run"), "--steps", "2", "--batch", "2", "--inner", "8"]
    assert main(common) == 2
    assert "arguments are required: --labels" in capsys.readouterr().err
    assert main([*common, "--labels", str(tmp_path / "labels"), "--out", str(tmp_path / "h.safetensors")]) == 0
    assert with_head(model, str(tmp_path / "h.safetensors")).head is not None
    assert main([*common[:2], "--backbone", "sudoku4", *common[4:], "--labels", str(tmp_path / "labels")]) == 2
    assert "the labels were made by weights" in capsys.readouterr().err


def test_a_head_can_begin_with_the_weights_of_another(tmp_path: Path) -> None:
    file, first = tmp_path / "h.safetensors", job()
    export_head(fit(first, tmp_path / "run", **SCHEDULE), file)
    fresh = make_head("low-rank", MODEL, [2], SIZES, 1)
    name = started(fresh, file)
    assert all(torch.equal(tensor, first.head.state_dict()[part]) for part, tensor in fresh.state_dict().items())
    again = Distill(MODEL, fresh, [2], LABELS, SETTINGS, DistillConfig(), start=name)
    assert again.evaluate() == first.evaluate()
    assert again.about()["start"] == name
    assert "start" not in first.about()
    longer = make_head("low-rank", MODEL, [2], {**SIZES, "hops": 1}, 1)
    assert started(longer, file) == name  # its hop is fresh, and corrects nothing yet
    assert Distill(MODEL, longer, [2], LABELS, SETTINGS, DistillConfig()).evaluate() == first.evaluate()
    for layers in ([1, 2], [2, 1]):  # of the layers that it has not read it takes nothing yet
        wider = make_head("low-rank", MODEL, layers, SIZES, 1)
        assert started(wider, file, layers) == name
        assert Distill(MODEL, wider, layers, LABELS, SETTINGS, DistillConfig()).evaluate() == pytest.approx(first.evaluate(), abs=1e-5)
    with pytest.raises(PairmiError, match=r"holds no low-rank head of this shape; expected \{'width'"):
        started(make_head("low-rank", MODEL, [0, 1], SIZES, 1), file, [0, 1])
    with pytest.raises(PairmiError, match=r"holds no low-rank head of this shape; expected \{'width'"):
        started(make_head("low-rank", MODEL, [1, 2], SIZES, 1), file)
    with pytest.raises(PairmiError, match="holds no pair-mlp head of this shape"):
        started(make_head("pair-mlp", MODEL, [2], SIZES, 1), file)


def lonely(labels: Labels, rows: torch.Tensor) -> Labels:
    """With a single unknown position in these rows."""
    tokens = labels.tokens.clone()
    tokens[rows] = torch.where(torch.arange(8) == 3, 4, tokens[rows] % 4)
    return replace(labels, tokens=tokens, masked=(tokens == 4).sum(1))


@pytest.mark.parametrize("loss", ["mse", "balanced", "root"])
def test_a_batch_without_a_pair_changes_nothing(loss: str) -> None:
    one = job(loss=loss)
    batch = batch_of(len(one.train), 16, 0, 0)
    grids = {one.train.grid[row] for row in batch.tolist()}
    few = lonely(LABELS, torch.tensor([row for row, grid in enumerate(LABELS.grid) if grid in grids]))
    one = Distill(MODEL, one.head, [2], few, SETTINGS, one.config)
    before = {name: tensor.clone() for name, tensor in one.tensors().items()}
    assert one.advance(0, 1.0) == 0
    assert all(torch.equal(tensor, before[name]) for name, tensor in one.tensors().items())
    one.advance(1, 1.0)
    assert all(tensor.isfinite().all() for tensor in one.tensors().values())
    assert any(not torch.equal(tensor, before[name]) for name, tensor in one.tensors().items())


def test_labels_without_any_pair_are_refused() -> None:
    head, alone = make_head("low-rank", MODEL, [2], SIZES, 0), lonely(LABELS, torch.arange(200))
    with pytest.raises(PairmiError, match=r"none of the \d+ states to train on has a pair of unknown positions that was measured; label"):
        Distill(MODEL, head, [2], alone, SETTINGS, DistillConfig())


def test_a_head_says_what_it_was_trained_on(tmp_path: Path) -> None:
    export_head(fit(job(), tmp_path / "run", **SCHEDULE | {"steps": 2}), tmp_path / "head.safetensors")
    head = with_head(MODEL, str(tmp_path / "head.safetensors")).head
    assert (head.trained_on.lengths, head.trained_on.symbols) == ((8, 8), 4)
    assert head.outside(torch.full((2, 8), 4)) is None
    assert head.outside(MODEL(LABELS.tokens[:3])) is None
    assert head.outside(torch.zeros(1, 8, dtype=torch.long)) is None  # nothing to estimate
    told = head.outside(torch.full((1, 9), 4))
    assert told == "the head was trained on 8 positions, this canvas has 9: its estimate may be far off; use mi=probe"
    assert head.trained_on.masked[0] == 0.25
    assert "trained with 25% to 100% of the positions unknown, here 12% are" in head.outside(torch.tensor([[4, 0, 0, 0, 0, 0, 0, 0]]))


def test_bad_requests_are_refused() -> None:
    with pytest.raises(PairmiError, match="train head: unknown loss 'odd'; known: mse, balanced, root"):
        DistillConfig(loss="odd")
    with pytest.raises(PairmiError, match="train head: batch and validation must be >= 1 and augment >= 0, got 0, 256 and 0"):
        DistillConfig(batch=0)
    with pytest.raises(PairmiError, match="train head: unknown kind 'odd'; known: low-rank, pair-mlp"):
        make_head("odd", MODEL, [2], SIZES, 0)
    head = make_head("low-rank", MODEL, [2], SIZES, 0)
    with pytest.raises(PairmiError, match=r"the labels were made by weights .*, but model 'tiny' has .*; label again"):
        Distill(tiny(seed=1), head, [2], LABELS, SETTINGS, DistillConfig())
    with pytest.raises(PairmiError, match="1 labelled states leave nothing to train or to validate on; make more"):
        Distill(MODEL, head, [2], LABELS.pick(torch.tensor([0])), SETTINGS, DistillConfig())
