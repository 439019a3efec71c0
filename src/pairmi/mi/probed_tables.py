"""Exact tables q(x_j | x_i = v) from the model itself, for symbols that were drawn: one more row for each of them."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from pairmi.info import LARGE
from pairmi.types import Meter, PerRow, Prediction, State


def combined(log_p: Float[Tensor, "*N V"], low: Float[Tensor, "*N V"], high: Float[Tensor, "*N V"]) -> Float[Tensor, "*N V"]:
    """Log p + the strongest exclusion + the strongest support, normalised; p itself where that excludes every symbol."""
    total = log_p + low + high
    return functional.log_softmax(torch.where((total > -torch.inf).any(-1, keepdim=True), total, log_p), dim=-1)


@dataclass(frozen=True)
class ProbedTables:
    """Shifts D_m(w) = log q(w | x_m = v) - log p(w) of each drawn member m, combined by min_m min(0, D_m) + max_m max(0, D_m).

    Redundant evidence does not count twice, which is what ruins the sum. One drawn member gives its table row itself, so that two
    members lose nothing where the model is consistent. Pairs alone tell nothing of an XOR.
    """

    def begin(self, prediction: Prediction, members: Int[Tensor, "B M"], backbone: Meter) -> State:
        """Nothing is shifted yet."""
        every = torch.arange(len(members), device=members.device)
        log_probs = prediction.log_probs[every[:, None], members]
        log_probs = log_probs.double() if log_probs.shape[-1] < LARGE else log_probs.float()
        nothing = torch.zeros_like(log_probs)
        return {"tokens": prediction.tokens, "members": members, "log_probs": log_probs, "low": nothing, "high": nothing}

    def after(self, state: State, rank: PerRow, symbol: PerRow, backbone: Meter) -> State:
        """The row of the canvas with this symbol alone tells how all other members move."""
        every, log_probs = torch.arange(len(rank), device=rank.device)[:, None], state["log_probs"]
        tokens = state["tokens"].scatter(1, state["members"].gather(1, rank[:, None]), symbol[:, None])
        moved = backbone(tokens, every[:, 0]).log_probs[every, state["members"]].to(log_probs.dtype)
        shift = torch.where(log_probs > -torch.inf, moved - log_probs, 0)  # what is excluded already stays so
        low, high = torch.minimum(state["low"], shift), torch.maximum(state["high"], shift)
        return dict(state) | {"low": low, "high": high}

    def shifted(self, state: State, rank: PerRow) -> Float[Tensor, "B V"]:
        """By minmax."""
        every = torch.arange(len(rank), device=rank.device)
        return combined(*(state[name][every, rank] for name in ("log_probs", "low", "high")))
