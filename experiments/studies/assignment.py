"""From scores between product atoms and reactant atoms to a map: what chemistry knows without any model, the same for every score."""

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import linear_sum_assignment

from studies.reactions import Reaction

LEAST = 1e-9


@dataclass(frozen=True)
class Assignment:
    """How scores become a choice.

    columns     a reactant atom is used about once: rows and columns are normalised in turn, so many times
    neighbours  atoms that are bonded come from atoms that are bonded: so many rounds of P_ji <- P_ji (weight + support of j's neighbours)
    one_to_one  the best assignment that uses every reactant atom at most once, instead of the best for each product atom
    """

    columns: int = 0
    neighbours: int = 0
    weight: float = 0.1
    one_to_one: bool = False

    def __str__(self) -> str:
        parts = [f"{self.columns} rounds of columns"] if self.columns else []
        parts += [f"{self.neighbours} of neighbours (weight {self.weight:g})"] if self.neighbours else []
        return ", ".join(parts + (["one to one"] if self.one_to_one else [])) or "the highest score"

    def __call__(self, reaction: Reaction, scores: np.ndarray) -> np.ndarray:
        """The reactant atom of each product atom."""
        possible = reaction.possible
        shares = _rows(np.where(possible, np.maximum(scores, LEAST), 0))
        for _ in range(self.columns):
            shares = _rows(shares / np.maximum(shares.sum(0, keepdims=True), LEAST))
        first = shares
        for _ in range(self.neighbours):
            shares = _rows(first * (self.weight + reaction.products.bonds @ shares @ reaction.reactants.bonds))
        chosen = shares.argmax(1)
        if self.one_to_one:
            rows, columns = linear_sum_assignment(-np.log(np.maximum(shares, 1e-300)))
            fits = possible[rows, columns]
            chosen[rows[fits]] = columns[fits]
        return chosen


def _rows(shares: np.ndarray) -> np.ndarray:
    return shares / np.maximum(shares.sum(1, keepdims=True), 1e-300)


GRID = tuple(
    Assignment(columns, neighbours, weight, one_to_one)
    for columns, (neighbours, weight), one_to_one in product((0, 3), ((0, 0.1), (10, 0.1), (3, 0.3)), (False, True))
)
