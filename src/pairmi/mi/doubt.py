"""How far a shifted marginal is to be trusted: what drawing from it is expected to lose, in nats."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from pairmi.info import entropy

HEARD = 6  # numbers about those that were drawn before
SAID = 6  # numbers about the marginal and what became of it
LOWEST, HIGHEST = -14.0, 2.0  # log nats


class Doubt(nn.Module):
    """E KL(conditional || shifted marginal), from what was drawn, how far the marginal moved, and what the tables saw on the way.

    Most of what learnt tables lose, they lose on one member in twenty. Two small layers.
    """

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.first = nn.Linear(HEARD + SAID + 2 * width, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.nats = nn.Linear(hidden, 1)

    def known(
        self,
        log_p: Float[Tensor, "*N V"],
        log_q: Float[Tensor, "*N V"],
        inner: Float[Tensor, "*N V K"],  # of the network that shifted each symbol
        heard: Float[Tensor, "*N H"],
    ) -> Float[Tensor, "*N F"]:
        """What the network reads."""
        p, q = log_p.exp(), log_q.exp()
        gain = (q * (log_q - log_p.clamp_min(-30))).sum(-1)
        said = (entropy(log_q).float(), entropy(log_p).float(), 0.5 * (p - q).abs().sum(-1), gain, log_q.amax(-1), log_p.amax(-1))
        seen = torch.cat([(weight[..., None] * inner).sum(-2) for weight in (p, q)], dim=-1)
        return torch.cat([heard, torch.stack(said, dim=-1), seen / (1 + seen.abs() / 8)], dim=-1)

    def forward(self, known: Float[Tensor, "*N F"]) -> Float[Tensor, "*N"]:
        """In nats; outside of training by a product of its own for each row."""
        x = known
        for layer in (self.first, self.second, self.nats):
            x = x if layer is self.first else x.relu()
            x = functional.linear(x, layer.weight, layer.bias) if torch.is_grad_enabled() else _alone(layer, x)
        return x[..., 0].clamp(LOWEST, HIGHEST).exp()


def _alone(layer: nn.Linear, x: Float[Tensor, "*N A"]) -> Float[Tensor, "*N B"]:
    flat = x.reshape(-1, 1, x.shape[-1])
    out = torch.bmm(flat, layer.weight.t().expand(len(flat), -1, -1)) + layer.bias
    return out.view(*x.shape[:-1], -1)


def drawn_before(
    log_p: Float[Tensor, "*B N V"], symbol: Tensor, told: Float[Tensor, "*B N"], unknown: Float[Tensor, "*B 1"]
) -> Float[Tensor, "*B N H"]:
    """After each member: the largest and the summed surprise and entropy of those drawn (`told` is 1), and how many there are."""
    surprise = -log_p.gather(-1, symbol[..., None])[..., 0].clamp_min(-30) * told
    own = entropy(log_p).float() * told
    ran = (surprise.cummax(-1).values, surprise.cumsum(-1) / 4, own.cummax(-1).values, own.cumsum(-1) / 4, told.cumsum(-1) / 8)
    return torch.stack([*ran, (unknown / 64).expand_as(told)], dim=-1)
