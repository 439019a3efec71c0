"""A Sudoku model that knows one grid."""

import torch
from torch import Tensor

from pairmi.types import Prediction, Vocab


class Oracle:
    """Knows one grid, and believes in it with a certain probability."""

    vocab = Vocab(tuple("123456789"))
    length = 81

    def __init__(self, solution: Tensor, sure: float) -> None:
        self.solution, self.sure = solution, sure

    def __call__(self, tokens: Tensor) -> Prediction:
        probs = torch.full((*tokens.shape, 9), (1 - self.sure) / 8, dtype=torch.float64)
        probs.scatter_(2, self.solution.expand_as(tokens)[:, :, None], self.sure)
        return Prediction(tokens, probs.log(), probs)
