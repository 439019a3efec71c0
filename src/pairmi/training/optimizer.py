"""Muon for the matrices inside the blocks and AdamW for everything else, in float32."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pairmi.training.processes import Processes


def orthogonalise(matrices: Float[Tensor, "N R C"], iterations: int = 5) -> Float[Tensor, "N R C"]:
    """Approximately U V^T of each matrix U S V^T, by a quintic Newton-Schulz iteration (Jordan et al. 2024).

    In float32: bfloat16, the usual choice on a GPU, is several times slower on a CPU.
    """
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2) if tall else matrices
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(iterations):
        gram = torch.bmm(x, x.transpose(1, 2))
        x = 3.4445 * x + torch.bmm(torch.baddbmm(gram, gram, gram, beta=-4.7750, alpha=2.0315), x)
    out: Tensor = x.transpose(1, 2) if tall else x
    return out


@dataclass(frozen=True)
class Rates:
    """Learning rates at their highest, and the constants of both methods."""

    muon: float = 0.02
    adam: float = 2e-3
    momentum: float = 0.95
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.0


class MuonAdamW:
    """One optimiser over named parameters; its whole state is a flat dictionary of tensors.

    `stacked` maps the name of each parameter that Muon takes to the number of stacked matrices in it: 3 for a joint
    query-key-value projection, whose parts are orthogonalised separately. All others are AdamW's.
    """

    def __init__(self, parameters: Mapping[str, nn.Parameter], stacked: Mapping[str, int], rates: Rates) -> None:
        self.parameters, self.stacked, self.rates = dict(parameters), dict(stacked), rates
        self.state: dict[str, Tensor] = {}
        for name, parameter in self.parameters.items():
            kinds = ("momentum",) if name in self.stacked else ("mean", "square")
            self.state |= {f"{kind}.{name}": torch.zeros_like(parameter) for kind in kinds}

    def shared_step(self, number: int, scale: float, tally: Float[Tensor, " 2"], processes: Processes, *also: Tensor) -> float:
        """Sum the gradients, the tally (error, weight) and what else is to be shared over all processes; step on error / weight.

        Returns the error over the weight of the whole batch. One without any weight has nothing to learn from: nothing changes.
        """
        for parameter in self.parameters.values():
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        gradients = [cast(Tensor, parameter.grad) for parameter in self.parameters.values()]
        processes.total([*gradients, tally, *also])
        if not tally[1]:
            for parameter in self.parameters.values():
                parameter.grad = None
            return 0.0
        for gradient in gradients:
            gradient.div_(tally[1])
        self.step(number, scale)
        return float(tally[0] / tally[1])

    @torch.no_grad()
    def step(self, number: int, scale: float) -> None:
        """Apply the gradients of step `number` (from 0) at `scale` times the highest rates, and clear them."""
        by_shape: dict[torch.Size, list[tuple[Tensor, Tensor]]] = {}
        for name, parameter in self.parameters.items():
            assert parameter.grad is not None, name
            if name in self.stacked:
                momentum = self.state[f"momentum.{name}"].lerp_(parameter.grad, 1 - self.rates.momentum)
                nesterov = parameter.grad.lerp(momentum, self.rates.momentum)
                for part, update in zip(parameter.chunk(self.stacked[name]), nesterov.chunk(self.stacked[name]), strict=True):
                    by_shape.setdefault(part.shape, []).append((part, update))
            else:
                self._adam(name, parameter, number, scale)
            parameter.grad = None
        for shape, pairs in by_shape.items():
            updates = orthogonalise(torch.stack([update for _, update in pairs]))
            size = scale * self.rates.muon * max(1.0, shape[0] / shape[1]) ** 0.5
            for (part, _), update in zip(pairs, updates, strict=True):
                part.mul_(1 - scale * self.rates.muon * self.rates.weight_decay).sub_(update, alpha=size)

    def _adam(self, name: str, parameter: nn.Parameter, number: int, scale: float) -> None:
        assert parameter.grad is not None
        first, second = self.rates.betas
        mean = self.state[f"mean.{name}"].lerp_(parameter.grad, 1 - first)
        square = self.state[f"square.{name}"].lerp_(parameter.grad.square(), 1 - second)
        size = scale * self.rates.adam
        denominator = (square / (1 - second ** (number + 1))).sqrt_().add_(1e-8)
        parameter.mul_(1 - size * self.rates.weight_decay)
        parameter.addcdiv_(mean / (1 - first ** (number + 1)), denominator, value=-size)
