"""How close a sequence is to what a model was trained on: the identity with the nearest training sequence."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pairmi.bench.sequence_sets import PLACES
from pairmi.types import PairmiError

WORD = 3


def _words(texts: Sequence[str]) -> Any:
    """Which of the 8,000 words of three residues occur in each sequence, as a sparse matrix."""
    from scipy.sparse import csr_matrix

    size = len(PLACES)
    found = [np.unique(np.convolve([PLACES[letter] for letter in text], [1, size, size**2], "valid")) for text in texts]
    ends = np.cumsum([0, *(len(one) for one in found)])
    return csr_matrix((np.ones(ends[-1], np.int32), np.concatenate(found), ends), shape=(len(texts), size**WORD))


class Nearest:
    """Search among training sequences: of those that share most words the `candidates` first are aligned.

    Words find everything of some 40 % identity and more; below that the nearest may be missed, and the identity is a lower bound.
    """

    def __init__(self, training: Sequence[str], candidates: int = 8) -> None:
        try:
            from biotite.sequence import ProteinSequence
            from biotite.sequence.align import SubstitutionMatrix
        except ImportError as error:
            raise PairmiError("novelty: biotite is missing; pip install 'pairmi[protein]'") from error
        self.training, self.candidates = training, candidates
        self.words, self.matrix, self.sequence = _words(training), SubstitutionMatrix.std_protein_matrix(), ProteinSequence

    def identity(self, text: str) -> float:
        """Identical residues in the best alignment (BLOSUM62, gaps -10 and -1, ends free) over the length of `text`."""
        from biotite.sequence.align import align_optimal

        shared = np.asarray((self.words @ _words([text]).T).todense())[:, 0]
        best = 0.0
        for place in np.argsort(-shared, kind="stable")[: self.candidates]:
            aligned = align_optimal(
                self.sequence(text), self.sequence(self.training[place]), self.matrix, (-10, -1), terminal_penalty=False, max_number=1
            )[0]
            mine, theirs = aligned.trace.T
            both = (mine >= 0) & (theirs >= 0)
            same = sum(text[i] == self.training[place][j] for i, j in zip(mine[both], theirs[both], strict=True))
            best = max(best, same / len(text))
        return best
