"""Matrix products: each sequence on its own, so that no bit of a row depends on its batch, or all in half precision."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from pairmi.types import PairmiError

PRECISIONS = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


class Rowwise(nn.Linear):
    """A linear map which, in float32 on a CPU and outside of training, is one product per row: of the same shape in every batch.

    It is also the faster way there, where one row's activations stay in the cache. Everywhere else rows agree up to rounding only, and
    one product for the whole batch is faster: a network that moves to a GPU takes it by itself.
    """

    def forward(self, x: Float[Tensor, "B *L D"]) -> Float[Tensor, "B *L E"]:
        """X W^T + b."""
        alone = x.device.type == "cpu" and x.dtype == torch.float32 and x.ndim == 3
        if not alone or torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"):
            return functional.linear(x, self.weight, self.bias)
        product = torch.bmm(x, self.weight.t().expand(len(x), -1, -1))
        return product if self.bias is None else product + self.bias


def make_rowwise(network: nn.Module) -> None:
    """Let every plain linear map of a network multiply row by row; parameters and their names stay as they are."""
    for parent in list(network.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Linear:  # not its subclasses: they may do more
                twin = Rowwise(child.in_features, child.out_features, child.bias is not None, device="meta")
                twin.weight, twin.bias = child.weight, child.bias
                twin.train(child.training)
                setattr(parent, name, twin)


def named(precision: str, who: str) -> torch.dtype:
    """The type of this name."""
    if precision not in PRECISIONS:
        raise PairmiError(f"{who}(precision={precision!r}): expected one of {', '.join(PRECISIONS)}")
    return PRECISIONS[precision]


def products_in(dtype: torch.dtype, device: str) -> AbstractContextManager[Any]:
    """Matrix products in this type, all between them in float32; for float32, as whoever is around it says."""
    return nullcontext() if dtype == torch.float32 else torch.autocast(device, dtype)


def in_full(device: str) -> AbstractContextManager[Any]:
    """Matrix products in float32, whatever is around."""
    return torch.autocast(device, torch.bfloat16, enabled=False) if torch.amp.is_autocast_available(device) else nullcontext()
