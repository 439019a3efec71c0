"""The learned estimate of all pairwise mutual information from one pass: a few low-rank forms, mixed for each pair."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pairmi.info import entropy
from pairmi.types import Backbone, PairMatrix, PairmiError, PerPosition, Prediction, RowStreams

FAR = 64  # distances from here on are alike


@dataclass(frozen=True)
class LowRankConfig:
    """The shape of a `LowRankHead`; the defaults are the Sudoku head's."""

    width: int  # of one layer of the backbone
    symbols: int
    layers: int = 1  # how many layers of the backbone are reported side by side
    length: int = 0  # of a backbone that takes one length only: positions then have an embedding; 0 = any length
    inner: int = 96
    forms: int = 16
    rank: int = 16
    mixer: int = 16
    places: int = 4  # learned features of where the two positions are: of the pair itself, or of their distance where any length may come

    def __post_init__(self) -> None:
        sizes = (self.width, self.symbols, self.layers, self.inner, self.forms, self.rank, self.mixer, self.places)
        if min(sizes) < 1 or self.length < 0:
            raise PairmiError(f"LowRankConfig: sizes must be >= 1 (length >= 0), got {self}")


def capacities(log_probs: Float[Tensor, "B L V"]) -> PerPosition:
    """The entropies in float32, rounded down: what is at most this is at most the entropy."""
    rounded = entropy(log_probs).float()
    return torch.nextafter(rounded, torch.zeros_like(rounded))


def open_positions(masked: Tensor) -> list[Int[Tensor, " N"]]:
    """The positions of each row that are true."""
    where = torch.nonzero(masked)[:, 1]
    return list(where.split(masked.sum(1).tolist()))


class LowRankHead(nn.Module):
    """I_ij = sigmoid(mix(f_1(i, j), ..., f_K(i, j), e_ij, H_i, H_j)) min(H_i, H_j), both ways averaged.

    f_k(i, j) = u_ik^T diag(s_k) u_jk, symmetric and perhaps indefinite. u_i is computed once per position, from the layer-normed
    hidden states, the marginals, the entropy and the place; a pair then costs K products of rank r, a learned e_ij that does
    not look at the canvas, and a small network on all of these: O(N D r + N^2 r). The
    information bound I_ij <= min(H_i, H_j) holds by construction. Rows are computed one by one, over their masked positions only:
    a row's pairs stay in the cache, and its bits do not depend on its batch mates.
    """

    kind: ClassVar[str] = "low-rank"
    matrices: ClassVar[tuple[str, ...]] = ("inner.weight", "project.weight")  # which Muon trains

    def __init__(self, config: LowRankConfig) -> None:
        super().__init__()
        self.config = config
        size = config.forms * config.rank
        self.inner = nn.Linear(config.layers * config.width + config.symbols + 1, config.inner)
        self.project = nn.Linear(config.inner, size)
        self.position = nn.Parameter(0.5 * torch.randn(config.length, config.inner)) if config.length else None
        signs = 1.0 - 2.0 * (torch.arange(config.rank) % 2)
        self.signs = nn.Parameter(config.rank**-0.5 * signs.expand(config.forms, -1).clone())
        self.pair = nn.Parameter(0.1 * torch.randn(config.places, *((config.length, config.length) if config.length else (FAR,))))
        self.mix = nn.Linear(config.forms + config.places + 2, config.mixer)
        self.out = nn.Parameter(config.mixer**-0.5 * torch.randn(config.mixer))
        self.bias = nn.Parameter(torch.tensor(-2.0))

    def begin_at(self, share: float) -> None:
        """Let a fresh head say about this share of min(H_i, H_j) everywhere: one that begins far above its labels falls to 0 and stays."""
        self.bias.data.fill_(torch.logit(torch.tensor(share), eps=1e-4))

    def about(self) -> dict[str, Any]:
        """Its shape, for the file that it is kept in."""
        return asdict(self.config)

    def forward(self, prediction: Prediction, backbone: Backbone, rng: RowStreams) -> PairMatrix:
        """The matrix of each row, without gradients and without a look at the backbone."""
        with torch.inference_mode():
            return self.estimate(prediction)

    def estimate(self, prediction: Prediction) -> PairMatrix:
        """The same with gradients, in normal form."""
        caps, inputs = capacities(prediction.log_probs), self._inputs(prediction)
        length, blocks = prediction.tokens.shape[1], []
        for row, where in enumerate(open_positions(prediction.wanted)):
            block = self._pairs(inputs[row].index_select(0, where), caps[row].index_select(0, where), where)
            blocks.append(spread(block, where, length))
        return torch.stack(blocks) if blocks else inputs.new_zeros(0, length, length)

    def _inputs(self, prediction: Prediction) -> Float[Tensor, "B L E"]:
        """What is known of each position."""
        config, hidden = self.config, prediction.hidden
        check_prediction(self, prediction, config.layers * config.width, config.symbols, config.length)
        normed = functional.layer_norm(hidden.float().unflatten(2, (config.layers, config.width)), (config.width,)).flatten(2)
        marginals = prediction.log_probs.float().exp()
        return torch.cat([normed, marginals, entropy(prediction.log_probs).float()[:, :, None]], dim=2)

    def _pairs(self, inputs: Float[Tensor, "N E"], caps: Float[Tensor, " N"], where: Int[Tensor, " N"]) -> Float[Tensor, "N N"]:
        """The pairs of one row's masked positions: [K + P + 2, N, N] features, mixed by two small products."""
        count, config = len(where), self.config
        inner = self.inner(inputs)
        if self.position is not None:
            inner = inner + self.position.index_select(0, where)
        u = self.project(functional.gelu(inner)).view(count, config.forms, config.rank)
        forms = torch.bmm((u * self.signs).transpose(0, 1), u.permute(1, 2, 0))
        low, high = torch.minimum(caps[:, None], caps), torch.maximum(caps[:, None], caps)
        features = torch.cat([forms, self._places(where), low[None], high[None]]).flatten(1)
        hidden = torch.addmm(self.mix.bias[:, None], self.mix.weight, features)
        hidden = hidden.relu() if torch.is_grad_enabled() else hidden.relu_()
        one_way = torch.sigmoid((self.out @ hidden).view(count, count) + self.bias) * low
        return (0.5 * (one_way + one_way.t())).fill_diagonal_(0)  # last: a vectorised sigmoid may round equal numbers differently

    def _places(self, where: Int[Tensor, " N"]) -> Float[Tensor, "P N N"]:
        """What is known of a pair from where it is."""
        if not self.config.length:
            return self.pair[:, (where[:, None] - where).abs().clamp_max(FAR - 1)]
        return self.pair if len(where) == self.config.length else self.pair[:, where[:, None], where]


def spread(block: Float[Tensor, "N N"], where: Int[Tensor, " N"], length: int) -> Float[Tensor, "L L"]:
    """A matrix over the masked positions of a row as one over all, with zeros elsewhere."""
    if len(where) == length:
        return block
    out = block.new_zeros(length, length)
    return out.index_put((where[:, None], where), block)


def check_prediction(head: nn.Module, prediction: Prediction, width: int, symbols: int, length: int) -> None:
    """Refuse what comes from another kind of backbone."""
    who, hidden, log_probs = type(head).__name__, prediction.hidden, prediction.log_probs
    if hidden.shape[2] != width or (symbols and log_probs.shape[2] != symbols) or (length and hidden.shape[1] != length):
        raise PairmiError(
            f"{who}: expected {length or 'any number of'} positions, {symbols or 'any number of'} symbols and hidden states of width "
            f"{width}, got {hidden.shape[1]}, {log_probs.shape[2]} and {hidden.shape[2]}; load the head together with its own backbone"
        )
