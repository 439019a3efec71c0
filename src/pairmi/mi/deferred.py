"""Learnt tables that leave members which they doubt to a later pass."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from pairmi.mi.table import TableHead
from pairmi.types import Meter, PairmiError, PerRow, Prediction, State


@dataclass(frozen=True)
class Deferred:
    """A member waits if drawing it from its shifted marginal is expected to lose more than `limit` nats, given what was drawn before it."""

    tables: TableHead
    limit: float

    def __post_init__(self) -> None:
        if not self.limit >= 0:
            raise PairmiError(f"defer={self.limit}: must be >= 0 nats")
        if self.tables.doubt is None:
            raise PairmiError(
                "defer: these tables do not know what they lose; teach them with experiments/coupling_doubt.py, or leave it out"
            )

    def begin(self, prediction: Prediction, members: Int[Tensor, "B M"], backbone: Meter) -> State:
        """As the tables."""
        return self.tables.begin(prediction, members, backbone)

    def after(self, state: State, rank: PerRow, symbol: PerRow, backbone: Meter) -> State:
        """As the tables."""
        return self.tables.after(state, rank, symbol, backbone)

    def shifted(self, state: State, rank: PerRow) -> Float[Tensor, "B V"]:
        """As the tables."""
        return self.tables.shifted(state, rank)

    def judged(self, state: State, rank: PerRow) -> tuple[Float[Tensor, "B V"], Float[Tensor, " B"]]:
        """The shifted marginal, and its doubt."""
        return self.tables.judged(state, rank)
