"""Dependence through the positions in between: paths over an estimate of pairs, which correct that estimate."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

SURE = 0.05  # nats: a position that is about as sure as this passes on half of what it would


def product_of(weight: Float[Tensor, "M K"], x: Float[Tensor, "R K N"]) -> Float[Tensor, "R M N"]:
    """W x, one product per row: of the same shape in every batch."""
    return torch.bmm(weight.expand(len(x), -1, -1), x)


def mapped(weight: Float[Tensor, "M K"], x: Float[Tensor, "R K N"], bias: Float[Tensor, " M"]) -> Float[Tensor, "R M N"]:
    """W x + b, likewise."""
    return product_of(weight, x).add_(bias[:, None])


def sigmoid(x: Tensor) -> Tensor:
    """That of torch, which rounds the last elements of a batch in another way than the others; `exp` does not. Its gradient is finite."""
    return (1 + torch.exp(-x.clamp_min(-80))).reciprocal()


def openness(low: Float[Tensor, "R N N"]) -> Float[Tensor, "R N N"]:
    """How much a pair may pass on, from the smaller of its two entropies: 0 where one of them is known, towards 1 where none is sure."""
    return low / (low + SURE)


class Hop(nn.Module):
    """Two positions that see each other only through a third depend on each other: e_ik e_jk, summed over k, says how much.

    C kinds of edges e = sigmoid(z + W_e (features of the pair)) begin as the estimate itself, z being its logit, and learn which pairs are
    direct neighbours. The paths of two and of three edges, P = e e^T and P e^T, squashed to P / (1 + P), then correct features and logit:
    m' = relu(W (m, paths)), z' = z + w m'. It begins by correcting nothing. O(N^3 C), by matrix products.
    """

    def __init__(self, mixer: int, places: int, edges: int) -> None:
        super().__init__()
        self.edge = nn.Linear(mixer + places, edges)
        self.mix = nn.Linear(mixer + 2 * edges, mixer)
        self.out = nn.Parameter(torch.zeros(mixer))
        nn.init.normal_(self.edge.weight, std=0.05)
        nn.init.zeros_(self.edge.bias)

    def forward(
        self,
        open_to: Float[Tensor, "R N N"],
        logit: Float[Tensor, "R 1 N*N"],
        mixed: Float[Tensor, "R M N*N"],
        places: Float[Tensor, "R P N*N"],
    ) -> tuple[Float[Tensor, "R 1 N*N"], Float[Tensor, "R M N*N"]]:
        """The corrected logits and features of all pairs; `open_to` is how much each may pass on, see `openness`."""
        count, edges = open_to.shape[1], len(self.edge.bias)
        of_mixed, of_places = self.edge.weight.split([self.mix.out_features, places.shape[1]], dim=1)
        kept, of_paths = self.mix.weight.split([self.mix.out_features, 2 * edges], dim=1)
        raw, mixed = product_of(torch.cat([of_mixed, kept]), mixed).split([edges, self.mix.out_features], dim=1)
        raw = mapped(of_places, places, self.edge.bias).add_(raw).add_(logit)
        edge = (sigmoid(raw) * open_to.flatten(1)[:, None]).view(-1, count, count)
        two = torch.bmm(edge, edge.mT)
        paths = torch.stack([two, torch.bmm(two, edge.mT)], dim=1).view(len(open_to), -1, count * count)
        mixed = mapped(of_paths, paths / (1 + paths), self.mix.bias).add_(mixed).relu_()
        return product_of(self.out[None], mixed).add_(logit), mixed
