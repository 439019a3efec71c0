import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from cycles import Cycles
from pairmi.backbones.checkpoint import save_tensors
from pairmi.backbones.transformer import Transformer, TransformerConfig
from pairmi.loading import load
from pairmi.training.loop import Job, export
from pairmi.training.states import corrupt
from pairmi.types import PairmiError
from studies.denoise import Corpus, Denoise, DenoiseConfig, Levels, cross_entropy

SHAPE = TransformerConfig(symbols="abcd", length=8, width=16, depth=1, heads=2)


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def job(**changes: Any) -> Denoise:
    return Denoise(SHAPE, DenoiseConfig(**{"batch": 32, "micro": 32, "followed": 8} | changes), Cycles())


@pytest.mark.parametrize(("focus", "share"), [((0.35, 0.80), 0.6), ((0.0, 0.5), 0.25), ((0.5, 1.0), 1.0), ((0.2, 0.4), 0.0)])
def test_levels_have_their_share_in_focus(focus: tuple[float, float], share: float) -> None:
    t = Levels(focus, share).draw(10_000, rng())
    low, high = focus
    expected = share + (1 - share) * (high - low)
    assert t.min() >= 0
    assert t.max() <= 1
    assert abs(float(((t >= low) & (t <= high)).double().mean()) - expected) < 1e-3
    below = (1 - share) * low
    assert abs(float((t < low).double().mean()) - below) < 1e-3


def test_levels_are_stratified() -> None:
    """One level in each slice of equal probability: 40 over all of [0, 1], 60 in the focus."""
    for seed in range(20):
        t = Levels((0.35, 0.80), 0.6).draw(100, rng(seed))
        everywhere, focused = (t[:40] * 40).floor(), ((t[40:] - 0.35) / 0.45 * 60 + 1e-4).floor()
        assert torch.equal(everywhere, torch.arange(40.0))
        assert torch.equal(focused, torch.arange(60.0))
    assert not torch.equal(Levels().draw(9, rng(1)), Levels().draw(9, rng(2)))


@pytest.mark.parametrize(
    ("focus", "share"), [((0.8, 0.3), 0.5), ((-0.1, 0.5), 0.5), ((0.5, 1.1), 0.5), ((0.1, 0.5), 1.5), ((0.1, 0.5), -0.1)]
)
def test_impossible_levels_are_refused(focus: tuple[float, float], share: float) -> None:
    with pytest.raises(PairmiError, match=r"Levels: expected 0 <= focus\[0\] < focus\[1\] <= 1 and 0 <= share <= 1, got Levels"):
        Levels(focus, share)


def test_cross_entropy_is_the_sum_over_the_masked() -> None:
    torch.manual_seed(0)
    model = Transformer(SHAPE)
    torch.nn.init.normal_(model.readout.weight)
    clean = Cycles().draw(5, rng())
    noisy = corrupt(clean, torch.full((5,), 0.5), 4, rng(1))
    log_probs, plain = model(noisy).log_probs, 0.0
    for row in range(5):
        for place in range(8):
            if noisy[row, place] == 4:
                plain -= float(log_probs.detach()[row, place, clean[row, place]])
    assert abs(float(cross_entropy(model(noisy), clean).detach()) - plain) < 1e-4


@pytest.mark.parametrize("sizes", [{"followed": 33}, {"followed": -1}, {"batch": 0, "followed": 0}, {"micro": 0}])
def test_impossible_sizes_are_refused(sizes: dict[str, int]) -> None:
    with pytest.raises(PairmiError, match=r"DenoiseConfig: expected batch and micro >= 1 and 0 <= followed <= batch, got"):
        job(**sizes)


@pytest.mark.parametrize("again", [-0.1, 1.0])
def test_beginning_again_for_ever_is_refused(again: float) -> None:
    with pytest.raises(PairmiError, match=r"DenoiseConfig: again is a probability below 1 \(at 1 a row would never start anew\), got"):
        job(again=again)


@pytest.mark.parametrize("average", [-0.1, 1.0])
def test_an_average_that_never_moves_is_refused(average: float) -> None:
    with pytest.raises(PairmiError, match=r"DenoiseConfig: average is what a step keeps of the average, at least 0 and below 1, got"):
        job(average=average)


def test_the_average_is_of_all_weights_so_far_and_what_is_measured_and_written(tmp_path: Path) -> None:
    one, plain = job(average=0.9), job()
    expected = {name: tensor.clone() for name, tensor in one.tensors().items() if name.startswith("model.")}
    for step in range(100):
        assert one.advance(step, 1.0) == plain.advance(step, 1.0)  # it does not change the training
        kept = min(0.9, (step + 1) / (step + 10))
        for name, tensor in expected.items():
            tensor.mul_(kept).add_(one.tensors()[name], alpha=1 - kept)
    for name, tensor in expected.items():
        torch.testing.assert_close(one.tensors()[name.replace("model.", "average.")], tensor, rtol=1e-4, atol=1e-6)
    averaged = Transformer(SHAPE)
    averaged.load_state_dict({name.removeprefix("model."): tensor for name, tensor in expected.items()})
    assert one.evaluate()["nll"] == pytest.approx(Cycles().evaluate(averaged)["nll"], abs=1e-5)
    assert one.evaluate()["nll"] != plain.evaluate()["nll"]
    save_tensors(tmp_path / "checkpoint", one.tensors(), {"job": {**one.about(), "corpus": {}}, "rates": [1.0], "seconds": 0.0})
    export(tmp_path / "checkpoint", tmp_path / "out", "transformer")
    for file in ("checkpoint", "out"):
        loaded = load(str(tmp_path / file)).backbone.state_dict()
        assert all(torch.equal(loaded[name], tensor) for name, tensor in one.average.items())


class Known(Cycles):
    """The first symbol is visible and tells all the others."""

    def start(self, count: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        noisy, clean = super().start(count, rng)
        noisy[:, 0] = clean[:, 0]
        return noisy, clean

    def determined(self, noisy: Tensor) -> Tensor:
        return (noisy != 4).any(1)


def test_beginning_again_goes_on_from_tensors_bit_by_bit() -> None:
    def made() -> Denoise:
        return Denoise(SHAPE, DenoiseConfig(batch=12, micro=4, followed=8, again=0.7, average=0.9), Known())

    whole, first, second = made(), made(), made()
    for step in range(12):
        whole.advance(step, 1.0)
        (first if step < 5 else second).advance(step, 1.0)
        if step == 4:
            for name, tensor in second.tensors().items():
                tensor.copy_(first.tensors()[name])
    assert whole.tensors()["trajectories.met"].any()
    assert all(torch.equal(tensor, second.tensors()[name]) for name, tensor in whole.tensors().items())


def test_it_goes_on_from_given_weights() -> None:
    torch.manual_seed(7)
    start = Transformer(SHAPE)
    one = Denoise(SHAPE, DenoiseConfig(batch=4, followed=0), Cycles(), start)
    assert all(torch.equal(tensor, start.state_dict()[name]) for name, tensor in one.model.state_dict().items())
    assert one.about()["start"]
    assert "start" not in job().about()


def gradients(micro: int, **changes: Any) -> tuple[float, dict[str, Tensor]]:
    """The loss of a step and the gradients that the optimiser would see."""
    one, seen = job(micro=micro, **changes), {}
    for parameter in one.model.parameters():
        parameter.data.add_(torch.randn(parameter.shape, generator=rng(parameter.numel())), alpha=0.1)
    one.optimizer.step = lambda number, scale: seen.update({n: p.grad.clone() for n, p in one.optimizer.parameters.items()})
    return one.advance(0, 1.0), seen


@pytest.mark.parametrize("micro", [1, 5, 16])
def test_the_size_of_the_pieces_changes_nothing_but_rounding(micro: int) -> None:
    (loss, whole), (pieced_loss, pieced) = gradients(32), gradients(micro)
    assert abs(loss - pieced_loss) < 1e-5
    assert whole.keys() == pieced.keys()
    for name, gradient in whole.items():
        assert gradient.abs().max() > 0
        torch.testing.assert_close(pieced[name], gradient, rtol=1e-5, atol=1e-5)


def test_lower_precision_changes_the_products_and_nothing_else() -> None:
    (loss, exact), (half_loss, half) = gradients(32), gradients(32, precision="bfloat16")
    assert 0 < abs(loss - half_loss) < 0.02 * loss
    for name, gradient in exact.items():
        assert half[name].dtype == torch.float32
        assert not torch.equal(half[name], gradient)
        assert torch.cosine_similarity(half[name].flatten(), gradient.flatten(), dim=0) > 0.99, name
    one = job(precision="bfloat16")
    one.advance(0, 1.0)
    assert all(tensor.dtype != torch.bfloat16 for tensor in one.tensors().values())
    assert one.about() != job().about()


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(PairmiError, match=r"DenoiseConfig\(precision='half'\): expected one of float32, float16, bfloat16"):
        job(precision="half")


def test_a_tiny_model_learns() -> None:
    one = job()
    before = one.evaluate()["nll"]
    losses = [one.advance(step, 1.0) for step in range(150)]
    assert abs(losses[0] - math.log(4)) < 1e-5  # it starts from knowing nothing
    assert sum(losses[-20:]) / 20 < 0.5 * losses[0]
    assert one.evaluate()["nll"] < 0.3 * before


def test_a_step_is_a_function_of_seed_and_number() -> None:
    first, again, other = job(seed=1), job(seed=1), job(seed=2)
    assert all(torch.equal(first.tensors()[name], tensor) for name, tensor in again.tensors().items())
    assert [first.advance(step, 1.0) for step in range(3)] == [again.advance(step, 1.0) for step in range(3)]
    assert all(torch.equal(first.tensors()[name], tensor) for name, tensor in again.tensors().items())
    assert not torch.equal(first.tensors()["model.position"], other.tensors()["model.position"])


def test_a_job_tells_everything_that_its_result_depends_on() -> None:
    one = job()
    assert isinstance(one, Job)
    assert isinstance(one.corpus, Corpus)
    assert one.about()["corpus"] == {"name": "cycles"}
    assert one.about()["shape"]["width"] == 16
    changed = [job(seed=3), job(batch=9), job(followed=3), job(levels=Levels(share=0.1)), job(rates=replace(one.config.rates, muon=0.1))]
    assert all(other.about() != one.about() for other in changed)
    live = one.tensors()
    one.advance(0, 1.0)
    assert all(torch.equal(live[name], tensor) for name, tensor in one.tensors().items())  # they are the tensors themselves
    muon = {name.removeprefix("optimizer.momentum.") for name in live if name.startswith("optimizer.momentum.")}
    assert muon == {f"blocks.0.{part}.weight" for part in ("qkv", "mix", "up", "down")}
    assert one.optimizer.stacked["blocks.0.qkv.weight"] == 3
