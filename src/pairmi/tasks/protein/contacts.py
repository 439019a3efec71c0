"""Scores of pairs as predictions of which residues touch."""

import numpy as np
from jaxtyping import Bool, Float

from pairmi.types import PairmiError

Pairs = Float[np.ndarray, "L L"]


def apc(scores: Pairs) -> Pairs:
    """S_ij - S_i. S_.j / S_.. : without what each position has in common with all (the average product correction, Dunn et al. 2008)."""
    off = ~np.eye(len(scores), dtype=bool)
    mean = np.where(off, scores, 0).sum(1) / max(1, len(scores) - 1)
    total = float(mean.mean())
    return np.where(off, scores - np.outer(mean, mean) / total, 0) if total else np.zeros_like(scores)


def candidates(length: int, separation: int) -> tuple[np.ndarray, np.ndarray]:
    """The pairs (i, j) with j - i at least `separation`."""
    return np.triu_indices(length, separation)


def precision(scores: Pairs, contacts: Bool[np.ndarray, "L L"], separation: int, top: int) -> float:
    """The fraction of contacts among the `top` pairs with the highest scores, of those at least `separation` apart."""
    i, j = candidates(len(scores), separation)
    if not len(i):
        raise PairmiError(f"precision: a sequence of {len(scores)} residues has no pairs {separation} apart")
    best = np.argsort(-scores[i, j], kind="stable")[:top]
    return float(contacts[i, j][best].mean())


def chance(contacts: Bool[np.ndarray, "L L"], separation: int) -> float:
    """The fraction of contacts among all pairs at least `separation` apart."""
    return float(contacts[candidates(len(contacts), separation)].mean())
