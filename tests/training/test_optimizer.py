"""The optimiser against torch's AdamW and against Muon written out plainly."""

import pytest
import torch
from torch import Tensor, nn

from pairmi.training.optimizer import MuonAdamW, Rates, orthogonalise


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def plain_orthogonalise(matrix: Tensor) -> Tensor:
    """The quintic iteration on one matrix, in float64, always from the left."""
    x = matrix.double() / matrix.double().norm()
    for _ in range(5):
        a = x @ x.t()
        x = 3.4445 * x - 4.7750 * a @ x + 2.0315 * a @ a @ x
    return x


@pytest.mark.parametrize("shape", [(32, 32), (96, 24), (24, 96), (7, 5), (1, 8)])
def test_orthogonalised_matrices_have_singular_values_near_one(shape: tuple[int, int]) -> None:
    u, _, v = torch.linalg.svd(torch.randn(6, *shape, generator=rng()), full_matrices=False)
    stretched = u @ torch.diag(torch.linspace(1, 20, min(shape))) @ v
    values = torch.linalg.svdvals(orthogonalise(stretched))
    assert values.min() > 0.6
    assert values.max() < 1.3


@pytest.mark.parametrize("shape", [(20, 20), (40, 10), (10, 40)])
def test_orthogonalising_keeps_the_singular_vectors(shape: tuple[int, int]) -> None:
    matrices = torch.randn(4, *shape, generator=rng(1))
    u, _, v = torch.linalg.svd(matrices, full_matrices=False)
    middle = u.mT @ orthogonalise(matrices) @ v.mT
    off = middle - torch.diag_embed(middle.diagonal(dim1=1, dim2=2))
    assert off.abs().max() < 1e-4
    for matrix, out in zip(matrices, orthogonalise(matrices), strict=True):
        torch.testing.assert_close(out.double(), plain_orthogonalise(matrix), rtol=1e-4, atol=1e-4)


def test_the_size_of_a_gradient_does_not_matter_and_zero_stays_zero() -> None:
    matrices = torch.randn(2, 8, 8, generator=rng(2))
    torch.testing.assert_close(orthogonalise(1000 * matrices), orthogonalise(matrices), rtol=1e-3, atol=1e-4)
    assert torch.equal(orthogonalise(torch.zeros(1, 4, 4)), torch.zeros(1, 4, 4))


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_adamw_is_torchs(weight_decay: float) -> None:
    start = {"a": torch.randn(3, 4, generator=rng(3)), "b": torch.randn(5, generator=rng(4))}
    ours = {name: nn.Parameter(tensor.clone()) for name, tensor in start.items()}
    theirs = {name: nn.Parameter(tensor.clone()) for name, tensor in start.items()}
    optimizer = MuonAdamW(ours, {}, Rates(adam=0.01, weight_decay=weight_decay))
    reference = torch.optim.AdamW(theirs.values(), lr=0.01, betas=(0.9, 0.98), eps=1e-8, weight_decay=weight_decay)
    for step, scale in enumerate([0.1, 0.5, 1.0, 1.0, 0.3, 0.2]):
        for name in start:
            gradient = torch.randn(start[name].shape, generator=rng(100 + step)) * 10.0 ** (step - 3)
            ours[name].grad, theirs[name].grad = gradient.clone(), gradient.clone()
        reference.param_groups[0]["lr"] = 0.01 * scale
        optimizer.step(step, scale)
        reference.step()
        for name in start:
            torch.testing.assert_close(ours[name], theirs[name], rtol=1e-5, atol=1e-7)
    assert not torch.equal(ours["a"], start["a"])


@pytest.mark.parametrize("shape", [(8, 8), (16, 4), (4, 16)])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_muon_is_what_it_says(shape: tuple[int, int], weight_decay: float) -> None:
    start = torch.randn(shape, generator=rng(5))
    parameter = nn.Parameter(start.clone())
    optimizer = MuonAdamW({"w": parameter}, {"w": 1}, Rates(muon=0.05, momentum=0.9, weight_decay=weight_decay))
    plain, momentum = start.double(), torch.zeros(shape, dtype=torch.float64)
    for step, scale in enumerate([0.5, 1.0, 1.0, 0.25]):
        gradient = torch.randn(shape, generator=rng(200 + step))
        parameter.grad = gradient.clone()
        optimizer.step(step, scale)
        momentum = 0.9 * momentum + 0.1 * gradient
        update = plain_orthogonalise(0.1 * gradient + 0.9 * momentum)  # Nesterov: one momentum step ahead
        rate = 0.05 * scale
        plain = (1 - rate * weight_decay) * plain - rate * max(1, shape[0] / shape[1]) ** 0.5 * update
        torch.testing.assert_close(parameter.double(), plain, rtol=1e-4, atol=1e-5)


def moved(gradient: Tensor, parts: int) -> Tensor:
    parameter = nn.Parameter(torch.zeros_like(gradient))
    parameter.grad = gradient.clone()
    MuonAdamW({"w": parameter}, {"w": parts}, Rates(muon=1.0)).step(0, 1.0)
    return parameter.detach()


def test_stacked_matrices_are_orthogonalised_separately() -> None:
    gradient = torch.randn(24, 8, generator=rng(6)) * torch.tensor([1.0, 10, 100]).repeat_interleave(8)[:, None]
    separate = torch.cat([moved(part, 1) for part in gradient.chunk(3)])
    torch.testing.assert_close(moved(gradient, 3), separate, rtol=1e-4, atol=1e-5)
    for part in moved(gradient, 3).chunk(3):
        assert torch.linalg.svdvals(part).min() > 0.6
    assert (moved(gradient, 1) - separate).abs().max() > 0.1
    assert torch.linalg.svdvals(moved(gradient, 1)[:8]).max() < 0.6  # together, the small part is drowned by the large ones


def test_matrices_of_one_shape_are_updated_as_if_each_were_alone() -> None:
    gradients = {name: torch.randn(6, 6, generator=rng(seed)) for seed, name in enumerate("abc")}
    parameters = {name: nn.Parameter(torch.zeros(6, 6)) for name in gradients}
    for name, gradient in gradients.items():
        parameters[name].grad = gradient.clone()
    MuonAdamW(parameters, dict.fromkeys("abc", 1), Rates(muon=1.0)).step(0, 1.0)
    for name, gradient in gradients.items():
        torch.testing.assert_close(parameters[name].detach(), moved(gradient, 1), rtol=1e-4, atol=1e-5)


def test_the_state_is_flat_named_and_says_everything() -> None:
    def make() -> tuple[dict[str, nn.Parameter], MuonAdamW]:
        parameters = {"w": nn.Parameter(torch.ones(4, 4)), "b": nn.Parameter(torch.ones(4))}
        return parameters, MuonAdamW(parameters, {"w": 1}, Rates())

    def run(parameters: dict[str, nn.Parameter], optimizer: MuonAdamW, steps: range) -> None:
        for step in steps:
            for name, parameter in parameters.items():
                parameter.grad = torch.randn(parameter.shape, generator=rng(step + len(name)))
            optimizer.step(step, 1.0)
            assert all(parameter.grad is None for parameter in parameters.values())

    whole, through = make()
    run(whole, through, range(6))
    first, early = make()
    run(first, early, range(3))
    second, late = make()
    assert set(late.state) == {"momentum.w", "mean.b", "square.b"}
    for name in second:
        second[name].data.copy_(first[name].data)
    for name, tensor in late.state.items():
        tensor.copy_(early.state[name])
    run(second, late, range(3, 6))
    assert all(torch.equal(second[name], whole[name]) for name in whole)
