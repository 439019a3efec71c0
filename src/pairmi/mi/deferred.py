"""Tables that leave members which they doubt to the end of a set, or to a later pass."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pairmi.deferring import Asked, Doubting
from pairmi.types import Meter, PairmiError, PerRow, Prediction, State


@dataclass(frozen=True)
class Deferred:
    """Drawing a member from its shifted marginal is expected to lose some nats, given what was drawn before it: its doubt.

    Who is in greater doubt than `limit` is passed over. When all others are drawn, the least doubted of these come, as long as the doubts
    of the whole set do not exceed `late` nats; the rest waits for a later pass. In a draft that is verified the doubtful stand so at
    its end, where a rejection wastes least.
    """

    tables: Doubting
    limit: float
    late: float = 0.0

    def __post_init__(self) -> None:
        if not (self.limit >= 0 and self.late >= 0):
            raise PairmiError(f"defer={self.limit}, late={self.late}: must be >= 0 nats")

    def begin(self, prediction: Prediction, members: Int[Tensor, "B M"], backbone: Meter) -> State:
        """As the tables; the first member is drawn by itself."""
        state, one = self.tables.begin(prediction, members, backbone), torch.ones_like(members[:, 0])
        nats = torch.zeros(members.shape, dtype=torch.float64, device=one.device)
        return dict(state) | {"step": one, "passed": nats + torch.inf, "spent": nats[:, 0]}

    def after(self, state: State, rank: PerRow, symbol: PerRow, backbone: Meter) -> State:
        """As the tables."""
        return self.tables.after(state, rank, symbol, backbone)

    def shifted(self, state: State, rank: PerRow) -> Float[Tensor, "B V"]:
        """As the tables."""
        return self.tables.shifted(state, rank)

    def judged(self, state: State, size: PerRow) -> Asked:
        """All in their order, then those that were passed over, the least doubted first, until one exceeds what is left."""
        step, passed, row = state["step"], state["passed"], torch.arange(len(size), device=size.device)
        first = step < size
        least, again = passed.min(1)
        left = ~first & (least < torch.inf) if self.late else torch.zeros_like(first)
        rank = torch.where(first, step, torch.where(left, again, -1))
        at = rank.clamp_min(0)
        log_q, doubt = self.tables.doubted(state, at)
        doubt = doubt.double()
        spent = state["spent"] + doubt
        waits = torch.where(first, doubt > self.limit, spent > self.late) & (rank >= 0)
        passed = passed.clone()
        passed[row, at] = torch.where(first & waits, doubt, torch.inf)
        passed = passed.masked_fill((~first & waits)[:, None], torch.inf)  # whoever comes later is in greater doubt
        spent = torch.where(waits | (rank < 0), state["spent"], spent)
        return Asked(dict(state) | {"step": step + 1, "passed": passed, "spent": spent}, rank, log_q, waits, doubt)
