"""The sets that a rule chose at some contexts, and what their members are drawn from when all are filled in one pass."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pairmi.types import Meter, PerRow, Prediction, Ranks, Selection, State


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
        coupling, chosen = self.selection.coupling, self.selection.chosen
        members = torch.where(chosen, self.selection.order, chosen.shape[1]).argsort(dim=1, stable=True)
        return {} if coupling is None else coupling.begin(self.prediction, members, self.meter)

    def drawn_from(self, state: State, rank: int, parent: Int[Tensor, " B"], member: Int[Tensor, " B"]) -> Float[Tensor, "B V"]:
        """What the members of a rank are drawn from."""
        if self.selection.coupling is None or rank == 0:
            return self.prediction.log_probs[parent, member].double()
        return self.selection.coupling.shifted(state, torch.full_like(parent, rank)).double()

    def after(self, state: State, rank: int, symbol: Int[Tensor, " B"]) -> State:
        """When these symbols were drawn."""
        coupling = self.selection.coupling
        return state if coupling is None or not len(symbol) else coupling.after(state, torch.full_like(symbol, rank), symbol, self.meter)
