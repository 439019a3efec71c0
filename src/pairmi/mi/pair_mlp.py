"""The paper's head, for comparison: one network on every concatenated pair of hidden states."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from pairmi.mi.head import check_prediction, spread
from pairmi.mi.trained_on import TrainedOn
from pairmi.types import Backbone, PairMatrix, PairmiError, Positions, Prediction, RowStreams, Tokens


@dataclass(frozen=True)
class PairMLPConfig:
    """The shape of a `PairMLPHead`; at width 256 it has the 99,969 parameters that the paper reports."""

    width: int  # of the hidden states, all reported layers together
    first: int = 128
    second: int = 256

    def __post_init__(self) -> None:
        if min(self.width, self.first, self.second) < 1:
            raise PairmiError(f"PairMLPConfig: sizes must be >= 1, got {self}")


def open_positions(masked: Positions) -> list[Int[Tensor, " N"]]:
    """The positions of each row that are true; the host waits for the device once."""
    first = masked.argsort(dim=1, descending=True, stable=True)
    return [row[:count] for row, count in zip(first, masked.sum(1).tolist(), strict=True)]


class PairMLPHead(nn.Module):
    """I_ij = (f(h_i, h_j) + f(h_j, h_i)) / 2 with f = LayerNorm(2D), 2D-128-256-1: O(N^2 D), more than a pass of a small backbone."""

    kind: ClassVar[str] = "pair-mlp"
    matrices: ClassVar[tuple[str, ...]] = ("network.1.weight", "network.3.weight")  # which Muon trains

    def __init__(self, config: PairMLPConfig) -> None:
        super().__init__()
        self.config = config
        self.trained_on: TrainedOn | None = None
        self.network = nn.Sequential(
            nn.LayerNorm(2 * config.width),
            nn.Linear(2 * config.width, config.first),
            nn.ReLU(),
            nn.Linear(config.first, config.second),
            nn.ReLU(),
            nn.Linear(config.second, 1),
        )

    def about(self) -> dict[str, Any]:
        """Its shape, for the file that it is kept in."""
        return asdict(self.config)

    def forward(self, prediction: Prediction, backbone: Backbone, rng: RowStreams) -> PairMatrix:
        """The matrix of each row in float64, not below 0, without gradients and without a look at the backbone."""
        with torch.inference_mode(False), torch.no_grad():
            return self.estimate(prediction).clamp_min_(0).double()

    def outside(self, canvases: Prediction | Tokens) -> str | None:
        """In words what about canvases is unlike all that it was trained on; None = nothing, or nothing is known of its training."""
        return self.trained_on.outside(canvases) if self.trained_on else None

    def estimate(self, prediction: Prediction) -> PairMatrix:
        """The same with gradients, and before the cut at 0, which would stop them."""
        check_prediction(self, prediction, self.config.width, 0, 0)
        length = prediction.tokens.shape[1]
        blocks = [
            spread(self._pairs(prediction.hidden[row].float().index_select(0, where))[None], where[None], length)[0]
            for row, where in enumerate(open_positions(prediction.queried))
        ]
        return torch.stack(blocks) if blocks else prediction.hidden.new_zeros(0, length, length)

    def _pairs(self, hidden: Float[Tensor, "N D"]) -> Float[Tensor, "N N"]:
        """Both orders of every pair of one row's masked positions."""
        count = len(hidden)
        both = torch.cat([hidden[:, None].expand(-1, count, -1), hidden[None].expand(count, -1, -1)], dim=2)
        raw: Tensor = self.network(both)[:, :, 0]
        return (0.5 * (raw + raw.t())).fill_diagonal_(0)
