"""Scores of pairs as predictions of which residues touch."""

import numpy as np
from jaxtyping import Bool, Float

from pairmi.types import PairmiError

Pairs = Float[np.ndarray, "L L"]


def precision(scores: Pairs, contacts: Bool[np.ndarray, "L L"], separation: int, top: int) -> float:
    """The fraction of contacts among the `top` pairs with the highest scores, of those at least `separation` apart."""
    i, j = np.triu_indices(len(scores), separation)
    if not len(i):
        raise PairmiError(f"precision: a sequence of {len(scores)} residues has no pairs {separation} apart")
    best = np.argsort(-scores[i, j], kind="stable")[:top]
    return float(contacts[i, j][best].mean())


def chance(contacts: Bool[np.ndarray, "L L"], separation: int) -> float:
    """The fraction of contacts among all pairs at least `separation` apart."""
    return float(contacts[np.triu_indices(len(contacts), separation)].mean())
