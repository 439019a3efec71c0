"""The sets that a rule chose at some contexts, and what their members are drawn from when all are filled in one pass."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from pairmi.deferring import WAITS, Asked, ask
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

    def ask(self, state: State, number: int, parent: Int[Tensor, " B"]) -> Asked:
        """Who is drawn next in each context, when so many have been asked, and from what."""
        coupling, size = self.selection.coupling, self.size[parent]
        if coupling is not None and number:
            asked = ask(coupling, state, number, size)
            return replace(asked, log_q=asked.log_q.double())
        rank = torch.where(number < size, number, -1)
        log_q = self.prediction.log_probs[parent, self.member(parent, rank)].double()
        return Asked(state, rank, log_q, torch.zeros_like(rank, dtype=torch.bool), torch.zeros_like(log_q[:, 0]))

    def member(self, parent: Int[Tensor, " B"], rank: PerRow) -> PerRow:
        """The positions of these ranks."""
        return (self.order[parent] == rank[:, None]).long().argmax(1)

    def outcomes(self, possible: Bool[Tensor, "B V"], late: Bool[Tensor, " B"]) -> tuple[Int[Tensor, " C"], Int[Tensor, " C"]]:
        """The branches of each context: a symbol that is possible, or the one branch `WAITS` of who is late."""
        row, symbol = torch.nonzero(possible & ~late[:, None], as_tuple=True)
        waits = torch.nonzero(late)[:, 0]
        return torch.cat([row, waits]), torch.cat([symbol, torch.full_like(waits, WAITS)])

    def after(self, state: State, rank: PerRow, symbol: Int[Tensor, " B"]) -> State:
        """When these symbols were drawn."""
        coupling = self.selection.coupling
        return state if coupling is None or not len(symbol) else coupling.after(state, rank, symbol, self.meter)


def rows_of(state: State, index: Tensor) -> State:
    """What is remembered of some contexts, perhaps several times."""
    return {name: value[index] for name, value in state.items()}


def placed(tokens: Tokens, member: PerRow, symbol: PerRow) -> Tokens:
    """The canvases with these symbols at these positions, but where they wait."""
    at = member[:, None]
    return tokens.scatter(1, at, torch.where(symbol == WAITS, tokens.gather(1, at)[:, 0], symbol)[:, None])
