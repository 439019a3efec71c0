"""The sets that a rule chose at some contexts, and what their members are drawn from when all are filled in one pass."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pairmi.deferring import WAITS, Deferring
from pairmi.types import Meter, PerRow, Prediction, Ranks, Selection, State, Tokens


@dataclass(frozen=True)
class Sets:
    """What is known of sets: their order, and what each member is drawn from, given the symbols of those before it."""

    selection: Selection
    prediction: Prediction
    meter: Meter

    @property
    def order(self) -> Ranks:
        """The rank of each position; -1 = not chosen."""
        return torch.where(self.selection.chosen, self.selection.order, -1)

    @property
    def size(self) -> PerRow:
        """How many are chosen."""
        return self.selection.chosen.sum(1)

    def begin(self) -> State:
        """Before anything is drawn."""
        coupling = self.selection.coupling
        return {} if coupling is None else coupling.begin(self.prediction, self.selection.members, self.meter)

    def drawn_from(self, state: State, rank: int, parent: Int[Tensor, " B"], member: Int[Tensor, " B"]) -> Float[Tensor, "B V"]:
        """What the members of a rank are drawn from."""
        if self.selection.coupling is None or rank == 0:
            return self.prediction.log_probs[parent, member].double()
        return self.selection.coupling.shifted(state, torch.full_like(parent, rank)).double()

    def judged(
        self, state: State, rank: int, parent: Int[Tensor, " B"], member: Int[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B V"], Bool[Tensor, " B"]]:
        """What the members of a rank are drawn from, and who of them waits for a later pass."""
        coupling = self.selection.coupling
        if rank == 0 or not isinstance(coupling, Deferring):
            return self.drawn_from(state, rank, parent, member), torch.zeros_like(parent, dtype=torch.bool)
        log_q, doubt = coupling.judged(state, torch.full_like(parent, rank))
        return log_q.double(), doubt > coupling.limit

    def outcomes(self, possible: Bool[Tensor, "B V"], late: Bool[Tensor, " B"]) -> tuple[Int[Tensor, " C"], Int[Tensor, " C"]]:
        """The branches of each context: a symbol that is possible, or the one branch `WAITS` of who is late."""
        row, symbol = torch.nonzero(possible & ~late[:, None], as_tuple=True)
        waits = torch.nonzero(late)[:, 0]
        return torch.cat([row, waits]), torch.cat([symbol, torch.full_like(waits, WAITS)])

    def after(self, state: State, rank: int, symbol: Int[Tensor, " B"]) -> State:
        """When these symbols were drawn."""
        coupling = self.selection.coupling
        return state if coupling is None or not len(symbol) else coupling.after(state, torch.full_like(symbol, rank), symbol, self.meter)


def placed(tokens: Tokens, member: PerRow, symbol: PerRow) -> Tokens:
    """The canvases with these symbols at these positions, but where they wait."""
    at = member[:, None]
    return tokens.scatter(1, at, torch.where(symbol == WAITS, tokens.gather(1, at)[:, 0], symbol)[:, None])
