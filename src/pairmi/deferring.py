"""The protocol of couplings that leave some members of a set to a later pass."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from pairmi.types import Coupling, PerRow, State

WAITS = -1  # in the place of a symbol: the member was not drawn


@runtime_checkable
class Deferring(Coupling, Protocol):
    """A coupling that leaves members which it doubts to a later pass; `after` is told `WAITS` in the place of their symbols.

    Its doubt may depend on the symbols that were drawn before, never on the member's own: then decoding one by one in this order is exact.
    """

    @property
    def limit(self) -> float:
        """Nats: a member that is in greater doubt waits; the first of a set never does."""
        ...

    def judged(self, state: State, rank: PerRow) -> tuple[Float[Tensor, "B V"], Float[Tensor, " B"]]:
        """What `shifted` says of the member of this rank, and what drawing from that is expected to lose, in nats."""
        ...
