"""What sequences are made of: residues, repeats of few residues, copies of each other."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from pairmi.tasks.protein.residues import RESIDUES

WINDOW, TRIGGER = 12, 2.2  # residues and bits: what starts a low-complexity segment in SEG (Wootton & Federhen 1993)
PLACES = {residue: place for place, residue in enumerate(RESIDUES)}


def residue_counts(texts: Sequence[str]) -> Int[np.ndarray, " 20"]:
    """How often each residue occurs, in alphabetical order."""
    return np.bincount([PLACES[letter] for text in texts for letter in text], minlength=len(RESIDUES))


def unigram_perplexity(training: Sequence[str], held_out: Sequence[str]) -> float:
    """What knowing the residues' frequencies and nothing else comes to: exp of the cross-entropy; infinite if one was never seen."""
    counts, other = residue_counts(training), residue_counts(held_out)
    seen = other > 0
    if (counts[seen] == 0).any():
        return float("inf")
    return float(np.exp(-(other[seen] / other.sum()) @ np.log(counts[seen] / counts.sum())))


def low_complexity(text: str, window: int = WINDOW, trigger: float = TRIGGER) -> float:
    """The fraction of residues in some window whose composition has at most `trigger` bits of entropy."""
    if len(text) < window:
        return 0.0
    one_hot: Float[np.ndarray, "L 20"] = np.eye(len(RESIDUES))[[PLACES[letter] for letter in text]]
    sums = np.concatenate([np.zeros((1, len(RESIDUES))), one_hot.cumsum(0)])
    share = (sums[window:] - sums[:-window]) / window
    entropy = -(share * np.log2(np.where(share > 0, share, 1))).sum(1)
    low = np.zeros(len(text), dtype=bool)
    for start in np.flatnonzero(entropy <= trigger):
        low[start : start + window] = True
    return float(low.mean())


def distinct(texts: Sequence[str]) -> float:
    """The fraction of different sequences."""
    return len(set(texts)) / len(texts)
