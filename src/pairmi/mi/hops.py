"""Dependence through the positions in between: paths over an estimate of pairs, which correct that estimate."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

SURE = 0.05  # nats: a position that is about as sure as this passes on half of what it would
STEEPEST = 80.0  # beyond which exp would leave the range of float32, and gradients with it


def product_of(weight: Float[Tensor, "M K"], x: Float[Tensor, "R K N"]) -> Float[Tensor, "R M N"]:
    """W x, one product per row: of the same shape in every batch."""
    return torch.bmm(weight.expand(len(x), -1, -1), x)


def mapped(weight: Float[Tensor, "M K"], x: Float[Tensor, "R K N"], bias: Float[Tensor, " M"]) -> Float[Tensor, "R M N"]:
    """W x + b, likewise."""
    return product_of(weight, x).add_(bias[:, None])


def sigmoid(x: Tensor) -> Tensor:
    """That of torch, which rounds the last elements of a batch in another way than the others; `exp` does not. Its gradient is finite."""
    return (1 + torch.exp(-x.clamp_min(-STEEPEST))).reciprocal()


def openness(low: Float[Tensor, "R N N"]) -> Float[Tensor, "R N N"]:
    """How much a pair may pass on, from the smaller of its two entropies: 0 where one of them is known, towards 1 where none is sure."""
    return low / (low + SURE)


class Hop(nn.Module):
    """Two positions that see each other only through a third depend on each other: e_ik e_jk, summed over k, says how much.

    C kinds of edges e_ik = sigmoid(z_ik + W_e (features of the pair) + w_k) begin as the estimate itself, z being its logit, and learn
    which pairs are direct neighbours and, by w_k, from what is known of k, what k passes on. The paths of two and of three edges,
    P = e e^T and P e^T, as 1 / (1 + P), then correct features and logit: m' = relu(W (m, paths)), z' = z + w m'. It begins by correcting
    nothing. O(N^3 C), by matrix products.
    """

    def __init__(self, mixer: int, places: int, inner: int, edges: int) -> None:
        super().__init__()
        self.edge = nn.Linear(mixer + places, edges)
        self.through = nn.Parameter(torch.zeros(edges, inner))
        self.mix = nn.Linear(mixer + 2 * edges, mixer)
        self.out = nn.Parameter(torch.zeros(mixer))
        nn.init.normal_(self.edge.weight, std=0.3)
        nn.init.zeros_(self.edge.bias)

    def forward(
        self,
        inner: Float[Tensor, "R I N"],
        open_to: Float[Tensor, "R 1 N*N"],
        logit: Float[Tensor, "R 1 N*N"],
        mixed: Float[Tensor, "R M N*N"],
        places: Float[Tensor, "S P N*N"],
    ) -> tuple[Float[Tensor, "R 1 N*N"], Float[Tensor, "R M N*N"]]:
        """The corrected logits and features of all pairs; `inner` is what is known of a position, `open_to` how much a pair may pass on."""
        (rows, mixer, _), count, edges = mixed.shape, inner.shape[2], len(self.through)
        of_mixed, of_places = self.edge.weight.neg().split([mixer, places.shape[1]], dim=1)  # exp(-x) is what a sigmoid needs
        kept, of_paths = self.mix.weight.split([mixer, 2 * edges], dim=1)
        both = product_of(torch.cat([of_mixed, kept]), mixed)
        against = (both[:, :edges] + mapped(of_places, places, -self.edge.bias)).sub_(logit)
        against = against.view(rows, edges, count, count).sub_(product_of(self.through, inner)[:, :, None])
        edge = (open_to.view(rows, 1, count, count) / (1 + against.clamp_max_(STEEPEST).exp_())).flatten(0, 1)
        two = torch.bmm(edge, edge.mT)
        paths = torch.stack([two, torch.bmm(two, edge.mT)], dim=1).view(rows, 2 * edges, -1).add_(1).reciprocal_()
        mixed = both[:, edges:].add_(self.mix.bias[:, None]).baddbmm_(of_paths.expand(rows, -1, -1), paths).relu_()
        return torch.baddbmm(logit, self.out.expand(rows, 1, -1), mixed), mixed
