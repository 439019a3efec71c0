"""Training on another device than the CPU, by a stand-in for it: no GPU is needed, and none is tried."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from elsewhere import DEVICE, Elsewhere, There
from heads import SHAPE, labelled, tiny
from pairmi.backbones import esmc
from pairmi.backbones.checkpoint import load_tensors
from pairmi.backbones.identity import identify
from pairmi.backbones.masked_lm import Settings
from pairmi.backbones.transformer import TransformerConfig
from pairmi.model import Model
from pairmi.training.distill import Distill, DistillConfig, make_head
from pairmi.training.loop import fit
from pairmi.training.processes import Processes
from pairmi.types import Backbone
from studies.denoise import Denoise, DenoiseConfig, new_network

PROTEIN = esmc.Shape(16, 1, 2)
SIZES = {"inner": 16, "forms": 4, "rank": 4, "mixer": 8}
LABELS, SETTINGS = labelled(tiny(), 60)


class Corpus:
    """Random sequences; half of each canvas is unknown at the start."""

    def __init__(self, symbols: int) -> None:
        self.symbols = symbols

    def about(self) -> dict[str, Any]:
        return {"symbols": self.symbols}

    def draw(self, count: int, rng: torch.Generator) -> Tensor:
        return torch.randint(self.symbols, (count, 8), generator=rng)

    def start(self, count: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        clean = self.draw(count, rng)
        return clean.masked_fill(torch.arange(8) < 4, self.symbols), clean

    def turned(self, noisy: Tensor, clean: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        return noisy, clean

    def evaluate(self, model: Backbone) -> dict[str, float]:
        return {"first": float(-model(torch.full((3, 8), self.symbols)).log_probs[:, :, 0].mean())}


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The stand-in; torch knows no reduced precision for it, and none may be asked for."""

    def full_precision(device: str, dtype: torch.dtype, enabled: bool) -> AbstractContextManager[None]:
        assert not enabled
        return nullcontext()

    monkeypatch.setattr(torch, "autocast", full_precision)
    with Elsewhere():
        yield


def denoiser(device: str, shape: TransformerConfig | esmc.Shape = SHAPE) -> Denoise:
    symbols = 4 if isinstance(shape, TransformerConfig) else 20
    return Denoise(shape, DenoiseConfig(batch=12, micro=5, followed=4), Corpus(symbols), processes=Processes(device=device))


def protein_denoiser(device: str) -> Denoise:
    return denoiser(device, PROTEIN)


def distiller(device: str, kind: str = "low-rank", loss: str = "mse") -> Distill:
    head, config = make_head(kind, tiny(), (1, 2), SIZES, 0), DistillConfig(batch=8, loss=loss)
    return Distill(tiny(), head, (1, 2), LABELS, SETTINGS, config, Processes(device=device))


def protein_distiller(device: str) -> Distill:
    torch.manual_seed(0)
    model = Model(esmc.build(PROTEIN))
    labels = replace(LABELS, tokens=torch.where(LABELS.tokens == 4, 20, LABELS.tokens))
    settings = SETTINGS | {"backbone": identify(model)}
    return Distill(model, make_head("low-rank", model, (1,), SIZES, 0), (1,), labels, settings, DistillConfig(8), Processes(device=device))


JOBS: dict[str, Callable[[str], Denoise | Distill]] = {
    "denoiser": denoiser,
    "protein denoiser": protein_denoiser,
    "head": distiller,
    "protein head": protein_distiller,
    "balanced": lambda device: distiller(device, loss="balanced"),
    "root": lambda device: distiller(device, loss="root"),
    "pair-mlp": lambda device: distiller(device, "pair-mlp"),
}


MIXED: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "add": lambda here, there: here + there,
    "add a number": lambda here, there: here + there.sum(),
    "add in place": lambda here, there: here.sum().add_(there.sum()),
    "matmul": lambda here, there: there @ here,
    "stack": lambda here, there: torch.stack([there.sum(), here.sum()]),
    "cat": lambda here, there: torch.cat([there, here]),
    "index": lambda here, there: here[there.long()],
    "index_select": lambda here, there: there.index_select(0, here[0].long()),
    "index_put": lambda here, there: here.index_put_((here[0].long(),), there),
}


@pytest.mark.parametrize("name", MIXED)
def test_the_stand_in_refuses_what_a_gpu_would(name: str) -> None:
    here = torch.ones(2, 2)
    with pytest.raises(RuntimeError, match="expected all tensors to be on the same device"):
        MIXED[name](here, here.to(DEVICE))


def test_the_stand_in_allows_what_a_gpu_would() -> None:
    here = torch.tensor([1.0, 2.0])
    there = here.to(DEVICE)
    assert (there / here.sum() * 3).tolist() == [1, 2]
    assert there[torch.tensor([1])].tolist() == [2]
    assert torch.zeros(2).copy_(there).tolist() == torch.zeros(2, device=DEVICE).copy_(here).tolist() == [1, 2]
    assert isinstance(torch.tensor(1.0, device=DEVICE), There)
    assert not isinstance(there.cpu(), There)


@pytest.mark.parametrize("name", JOBS)
def test_a_job_learns_there_what_it_learns_here(name: str) -> None:
    here, there = JOBS[name]("cpu"), JOBS[name](DEVICE)
    for step in range(4):
        assert there.advance(step, 1.0) == pytest.approx(here.advance(step, 1.0), rel=1e-4)
    assert there.evaluate() == pytest.approx(here.evaluate(), rel=1e-3)
    assert there.about() == here.about()
    for part, tensor in there.tensors().items():
        assert isinstance(tensor, There) != part.startswith("trajectories."), part
        torch.testing.assert_close(tensor.cpu(), here.tensors()[part], rtol=1e-3, atol=1e-4, msg=part)
    assert not any(isinstance(tensor, There) for tensor in here.tensors().values())


@pytest.mark.parametrize("name", ["denoiser", "protein denoiser", "head"])
@pytest.mark.parametrize("places", [("cpu", DEVICE), (DEVICE, "cpu")])
def test_a_run_goes_on_on_another_device(name: str, places: tuple[str, str], tmp_path: Path) -> None:
    schedule: dict[str, Any] = {"warmup": 1, "decay": 0.0, "save_every": 3, "evaluate_every": 3, "quiet": True}
    for place, steps in zip(places, (3, 6), strict=True):
        moved = load_tensors(fit(JOBS[name](place), tmp_path / "moved", steps=steps, **schedule))[0]
    stayed = load_tensors(fit(JOBS[name]("cpu"), tmp_path / "stayed", steps=6, **schedule))[0]
    assert moved.keys() == stayed.keys()
    for part, tensor in stayed.items():
        torch.testing.assert_close(moved[part], tensor, rtol=1e-3, atol=1e-4, msg=part)


def test_tensors_are_summed_by_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two processes with the same numbers: one exchange for each device, and every tensor is doubled where it is."""
    exchanged = []

    def all_reduce(flat: Tensor) -> None:
        exchanged.append((flat.device.type, flat.numel()))
        flat.mul_(2)

    monkeypatch.setattr("torch.distributed.all_reduce", all_reduce)
    plain = [torch.rand(2, 3), torch.rand(4), torch.rand(()), torch.rand(2)]
    tensors = [tensor.clone().to(place) for tensor, place in zip(plain, (DEVICE, "cpu", DEVICE, "cpu"), strict=True)]
    Processes(0, 2, DEVICE).total(tensors)
    assert exchanged == [(DEVICE, 7), ("cpu", 6)]
    assert [isinstance(tensor, There) for tensor in tensors] == [True, False, True, False]
    assert all(torch.equal(tensor.cpu(), 2 * before) for tensor, before in zip(tensors, plain, strict=True))


@pytest.fixture
def asked_of_torch(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, torch.dtype]]:
    """The device and the reduced precision of every pass that is made in one."""
    seen: set[tuple[str, torch.dtype]] = set()

    def autocast(device: str, dtype: torch.dtype, enabled: bool = True) -> AbstractContextManager[None]:
        seen.update([(device, dtype)] if enabled else [])
        return nullcontext()

    monkeypatch.setattr(torch, "autocast", autocast)
    return seen


@pytest.mark.parametrize(("precision", "passes"), [("float32", set()), ("bfloat16", {(DEVICE, torch.bfloat16)})])
def test_a_half_precision_backbone_labels_and_learns_in_the_precision_asked_for(
    precision: str, passes: set[Any], asked_of_torch: set[Any]
) -> None:
    """Whatever it was loaded in; the head itself learns in float32."""
    torch.manual_seed(0)
    model = Model(esmc.build(PROTEIN, Settings(precision="bfloat16")))
    labels = replace(LABELS, tokens=torch.where(LABELS.tokens == 4, 20, LABELS.tokens))
    head, settings = make_head("low-rank", model, (1,), SIZES, 0), SETTINGS | {"backbone": identify(model)}
    asked_of_torch.clear()
    job = Distill(model, head, (1,), labels, settings, DistillConfig(8, precision=precision), Processes(device=DEVICE))
    assert asked_of_torch == passes
    asked_of_torch.clear()
    job.advance(0, 1.0)
    assert asked_of_torch == set()
    assert {tensor.dtype for tensor in job.tensors().values()} == {torch.float32}


def test_a_network_in_training_is_there_in_float32(asked_of_torch: set[Any]) -> None:
    model = new_network(PROTEIN, DEVICE)
    assert all(isinstance(parameter.data, There) and parameter.requires_grad for parameter in model.parameters())
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    protein_denoiser(DEVICE).advance(0, 1.0)
    assert asked_of_torch == set()
