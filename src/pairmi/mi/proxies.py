"""Stand-ins for mutual information, the controls: what a real estimate has to beat."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from pairmi.info import entropy_of, pair_matrix
from pairmi.types import Meter, PairMatrix, PairmiError, PairwiseMI, Prediction, RowStreams


def _smaller_entropy(prediction: Prediction) -> PairMatrix:
    """min(H_i, H_j), the most that two positions can share."""
    entropies = entropy_of(prediction)
    return torch.minimum(entropies[:, :, None], entropies[:, None, :])


@dataclass(frozen=True)
class RandomMI:
    """A random share of the most that two positions can have in common."""

    def __call__(self, prediction: Prediction, backbone: Meter, rng: RowStreams) -> PairMatrix:
        """Drawn again in each pass."""
        length = prediction.tokens.shape[1]
        return pair_matrix(rng.uniform("random-mi", length, length) * _smaller_entropy(prediction), prediction.queried)


@dataclass(frozen=True)
class Shuffled:
    """The matrix of `mi` with the unknown positions permuted: right values in the wrong places."""

    mi: PairwiseMI

    def __call__(self, prediction: Prediction, backbone: Meter, rng: RowStreams) -> PairMatrix:
        """A new permutation in each pass."""
        masked = prediction.queried
        matrix = self.mi(prediction, backbone, rng)
        shuffled = torch.where(masked, rng.uniform("shuffled-mi", masked.shape[1]), 2).argsort(1)
        plain = masked.long().argsort(dim=1, descending=True, stable=True)
        source = torch.empty_like(plain).scatter(1, plain, shuffled)  # the n-th masked position takes the place of a random one
        rows = matrix.gather(1, source[:, :, None].expand_as(matrix))
        return pair_matrix(rows.gather(2, source[:, None, :].expand_as(matrix)), masked)


@dataclass(frozen=True)
class Structural:
    """What a known graph says: linked positions share all that they can, others nothing."""

    graph: Float[Tensor, "L L"]

    def __call__(self, prediction: Prediction, backbone: Meter, rng: RowStreams) -> PairMatrix:
        """The graph's weights times min(H_i, H_j)."""
        graph, places = self.graph.to(prediction.tokens.device), prediction.places
        if places is not None:
            graph = graph[places[:, :, None], places[:, None]]
        if graph.shape[-1] != prediction.tokens.shape[1]:
            raise PairmiError(f"Structural: the graph has {self.graph.shape[0]} positions, the canvas {prediction.tokens.shape[1]}")
        return pair_matrix(graph * _smaller_entropy(prediction), prediction.queried)


@dataclass(frozen=True)
class Attended:
    """The backbone's own attention weights, scaled by min(H_i, H_j)."""

    def __call__(self, prediction: Prediction, backbone: Meter, rng: RowStreams) -> PairMatrix:
        """Attention in both directions, averaged over heads and layers."""
        if prediction.attention is None:
            raise PairmiError("Attended: the backbone reports no attention; load it with attention=True, or choose another mi")
        return pair_matrix(prediction.attention.double() * _smaller_entropy(prediction), prediction.queried)
