"""Who of a set is drawn next, and from what: the rule's order, or that of a coupling which lets members wait."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pairmi.types import Coupling, PerRow, State

WAITS = -1  # in the place of a symbol: the member was not drawn


@dataclass(frozen=True)
class Asked:
    """The next member of each row's set, and what becomes of it."""

    state: State
    rank: Int[Tensor, " B"]  # of the member; -1 = there is none, all that are left wait
    log_q: Float[Tensor, "B V"]  # what it is drawn from
    waits: Bool[Tensor, " B"]  # it is not drawn now
    doubt: Float[Tensor, " B"]  # what drawing it is expected to lose, in nats

    def rows(self, index: Int[Tensor, " R"]) -> "Asked":
        """The same for some of the rows."""
        state = {name: value[index] for name, value in self.state.items()}
        return Asked(state, *(x[index] for x in (self.rank, self.log_q, self.waits, self.doubt)))


@runtime_checkable
class Doubting(Coupling, Protocol):
    """A coupling that knows how far it is to be trusted."""

    def doubted(self, state: State, rank: PerRow) -> tuple[Float[Tensor, "B V"], Float[Tensor, " B"]]:
        """What `shifted` says of the member of this rank, and what drawing from that is expected to lose, in nats."""
        ...


@runtime_checkable
class Deferring(Coupling, Protocol):
    """A coupling that says who is drawn next, the first of a set excepted; `after` is told `WAITS` in the place of the symbol of who waits.

    It may look at the symbols that were drawn before, never at the member's own: then decoding one by one in this order is exact.
    """

    def judged(self, state: State, size: PerRow) -> Asked:
        """The next member of sets of these sizes; one that waits may be asked again later."""
        ...


def ask(coupling: Coupling, state: State, number: int, size: PerRow) -> Asked:
    """Who is next when so many of a set have been asked, the first among them."""
    if isinstance(coupling, Deferring):
        return coupling.judged(state, size)
    rank = torch.where(number < size, number, -1)
    log_q = coupling.shifted(state, rank.clamp_min(0))
    return Asked(state, rank, log_q, torch.zeros_like(rank, dtype=torch.bool), torch.zeros_like(log_q[:, 0]))
