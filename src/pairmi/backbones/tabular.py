"""An explicit joint distribution as a backbone: exact conditionals, exact mutual information."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pairmi.info import pair_matrix
from pairmi.types import PairMatrix, PairmiError, Prediction, Tokens, Vocab


class Tabular(nn.Module):
    """The joint given by its support (sequences [S, L]) and their weights, in float64.

    Where a context has no completion every open position is uniform: a rule that filled a contradiction in goes on.
    """

    def __init__(self, support: Int[Tensor, "S L"], weights: Float[Tensor, " S"], symbols: tuple[str, ...]) -> None:
        if not len(support) or support.min() < 0 or support.max() >= len(symbols):
            raise PairmiError(f"Tabular: the support must hold sequences over 0..{len(symbols) - 1}, got {list(support.shape)} tokens")
        if len(torch.unique(support, dim=0)) != len(support):
            raise PairmiError("Tabular: the support must hold each sequence once; add the weights of equal ones up")
        if not (torch.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
            raise PairmiError("Tabular: the weights must be finite, not negative and not all zero")
        super().__init__()
        self.vocab = Vocab(symbols)
        self.support: Tensor
        self.weights: Tensor
        self.register_buffer("support", support)
        self.register_buffer("weights", weights.double() / weights.double().sum())

    @property
    def length(self) -> int:
        """The number of positions."""
        return self.support.shape[1]

    def consistent(self, tokens: Tokens) -> Bool[Tensor, "B S"]:
        """Which sequences of positive weight fit each context."""
        if tokens.shape[1] != self.length:
            raise PairmiError(f"Tabular: expected canvases of {self.length} positions, got {tokens.shape[1]}")
        fits = (tokens[:, None, :] == self.support) | (tokens[:, None, :] == self.vocab.size)
        return fits.all(2) & (self.weights > 0)

    def posterior(self, tokens: Tokens) -> Float[Tensor, "B S"]:
        """P(sequence | context); all zero where the context has no completion."""
        joint = self.consistent(tokens) * self.weights
        return joint / joint.sum(1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)

    def forward(self, tokens: Tokens) -> Prediction:
        """The exact conditional marginals."""
        posterior = self.posterior(tokens)
        # Added up sequence by sequence: a matrix product rounds differently in batches of different sizes.
        marginals = torch.zeros(*tokens.shape, self.vocab.size, dtype=torch.float64, device=tokens.device).scatter_add_(
            2, self.support.t().expand(len(tokens), -1, -1), posterior[:, None, :].expand(-1, self.length, -1)
        )
        alive = posterior.sum(1) > 0.5
        marginals = torch.where(alive[:, None, None], marginals, 1 / self.vocab.size)
        marginals = marginals / marginals.sum(2, keepdim=True)
        return Prediction(tokens, marginals.log(), marginals)

    def pair_marginals(self, tokens: Tokens) -> Float[Tensor, "B L V L V"]:
        """P(x_i, x_j | context)."""
        length, size = self.length, self.vocab.size
        onehot = functional.one_hot(self.support, size).double().flatten(1)  # [S, L * V]
        joint = torch.einsum("bs,sx,sy->bxy", self.posterior(tokens), onehot, onehot)
        return joint.view(len(tokens), length, size, length, size)

    def mutual_information(self, tokens: Tokens) -> PairMatrix:
        """I(X_i; X_j | context), analytically: the truth that estimators are tested against."""
        joint = self.pair_marginals(tokens)
        single = self(tokens).log_probs.exp()
        product = single[:, :, :, None, None] * single[:, None, None, :, :]
        ratio = torch.where(joint > 0, joint / product, 1)
        return pair_matrix((joint * ratio.log()).sum((2, 4)), tokens == self.vocab.size)
