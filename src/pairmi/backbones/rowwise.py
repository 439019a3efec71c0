"""Linear maps that multiply each sequence on its own, so that no bit of a row depends on its batch."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional


class Rowwise(nn.Linear):
    """A linear map which, outside of training, is one [L, in] x [in, out] product per row: the same shape in every batch.

    It is also the faster way on a CPU, where one row's activations stay in the cache. In half precision, where rows agree up to
    rounding only, one product for the whole batch is twice as fast.
    """

    def forward(self, x: Float[Tensor, "B *L D"]) -> Float[Tensor, "B *L E"]:
        """X W^T + b."""
        if torch.is_grad_enabled() or x.ndim != 3 or (x.device.type == "cpu" and torch.is_autocast_enabled("cpu")):
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
