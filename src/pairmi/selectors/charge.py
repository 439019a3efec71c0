"""A calibrated charge: what a position really loses when it is filled together with others, learnt from measured prices."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from pairmi.types import PairmiError

FEATURES = ("shared", "strongest", "entropy", "size")  # sum and maximum of MI with the members before it, its entropy, how many these are
TINY = 1e-6  # nats: below this all is alike


@dataclass(frozen=True)
class Calibration:
    """log nats = bias + sum over features f of a rising piecewise linear function of log(f + 1e-6), constant outside its knots."""

    bias: float
    knots: tuple[tuple[float, ...], ...]  # of each feature, on the log scale
    rises: tuple[tuple[float, ...], ...]  # from each knot to the next, >= 0: more dependence never costs less

    def __post_init__(self) -> None:
        fits = len(self.knots) == len(self.rises) == len(FEATURES)
        fits = fits and all(len(knots) == len(rises) + 1 for knots, rises in zip(self.knots, self.rises, strict=True))
        rising = all(a < b for knots in self.knots for a, b in pairwise(knots)) and all(rise >= 0 for rises in self.rises for rise in rises)
        if not (fits and rising):
            raise PairmiError(f"Calibration: expected rising knots and rises >= 0 for each of {', '.join(FEATURES)}; calibrate again")

    def __call__(
        self, shared: Float[Tensor, " B"], strongest: Float[Tensor, " B"], entropy: Float[Tensor, " B"], size: Float[Tensor, " B"]
    ) -> Float[Tensor, " B"]:
        """The expected loss in nats of filling a position after `size` others; the first of a set loses nothing."""
        logs = torch.log(torch.stack([shared, strongest, entropy, size], dim=-1).double() + TINY)
        total = torch.full_like(logs[:, 0], self.bias)
        for column, (knots, rises) in enumerate(zip(self.knots, self.rises, strict=True)):
            climbed = steps(logs[:, column], torch.tensor(knots, dtype=torch.float64, device=logs.device))
            total = total + (climbed * torch.tensor(rises, dtype=torch.float64, device=logs.device)).sum(1)
        return torch.where(size > 0, total.exp(), 0)

    def about(self) -> dict[str, Any]:
        """For the description of the file that it is kept in."""
        return {
            "features": list(FEATURES),
            "bias": self.bias,
            "knots": [list(k) for k in self.knots],
            "rises": [list(r) for r in self.rises],
        }

    @classmethod
    def from_about(cls, about: Mapping[str, Any]) -> "Calibration":
        """What `about` described."""
        if list(about.get("features", ())) != list(FEATURES):
            raise PairmiError(f"Calibration: expected the features {', '.join(FEATURES)}, got {about.get('features')}; calibrate again")
        return cls(float(about["bias"]), tuple(map(tuple, about["knots"])), tuple(map(tuple, about["rises"])))


def steps(logs: Float[Tensor, " B"], knots: Float[Tensor, " K"]) -> Float[Tensor, "B K-1"]:
    """How far, 0..1, each value is from each knot to the next."""
    return ((logs[:, None] - knots[:-1]) / (knots[1:] - knots[:-1])).clamp(0, 1)
