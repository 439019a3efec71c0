"""A calibrated charge: what a position really loses when it is filled together with others, learnt from measured prices."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from pairmi.types import PairmiError

FEATURES = ("shared", "strongest", "entropy", "size", "unknown")  # sum and maximum of MI with those before it, its H, how many, of how many
RISING = FEATURES[:4]  # more of these never costs less; late in a sequence more or less may be lost
TINY = 1e-6  # nats: below this all is alike


@dataclass(frozen=True)
class Calibration:
    """log nats = bias + sum over features f of a piecewise linear function of log(f + 1e-6), constant outside its knots.

    A pass seldom spends all that it may, and a rule picks what is charged too little: `levels` says what the rule that the map was made
    for loses a pass in the mean where its charges may add up to so much, linear between logarithms. Beyond them, and without any, it is
    the line log lost = offset + slope * log allowed.
    """

    bias: float
    knots: tuple[tuple[float, ...], ...]  # of each feature, on the log scale
    rises: tuple[tuple[float, ...], ...]  # from each knot to the next
    offset: float = 0.0
    slope: float = 1.0
    levels: tuple[tuple[float, float], ...] = ()  # (log allowed, log lost), both rising

    def __post_init__(self) -> None:
        fits = len(self.knots) == len(self.rises) == len(FEATURES)
        fits = fits and all(len(knots) == len(rises) + 1 for knots, rises in zip(self.knots, self.rises, strict=True))
        climbing = all(rise >= 0 for rises in self.rises[: len(RISING)] for rise in rises)
        rising = self.slope > 0 and all(a < b for some in (*self.knots, *zip(*self.levels, strict=True)) for a, b in pairwise(some))
        if not (fits and climbing and rising):
            raise PairmiError(
                f"Calibration: expected rising knots for each of {', '.join(FEATURES)}, rises >= 0 for the first {len(RISING)}, a slope "
                "above 0 and rising levels; calibrate again"
            )

    @cached_property
    def _pieces(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Of all pieces of all features: which feature, where it begins, how long it is, how much it rises."""
        column = torch.tensor([n for n, rises in enumerate(self.rises) for _ in rises])
        ends = torch.tensor([pair for knots in self.knots for pair in pairwise(knots)], dtype=torch.float64)
        rises = torch.tensor([rise for rises in self.rises for rise in rises], dtype=torch.float64)
        return column, ends[:, 0], ends[:, 1] - ends[:, 0], rises

    def __call__(self, features: Float[Tensor, "B 5"]) -> Float[Tensor, " B"]:
        """The expected loss in nats of filling a position after others, by its `FEATURES`; the first of a set loses nothing."""
        column, begin, length, rises = (part.to(features.device) for part in self._pieces)
        logs = torch.log(features.double() + TINY)[:, column]
        total = self.bias + ((logs - begin) / length).clamp(0, 1) @ rises
        return torch.where(features[:, 3] > 0, total.exp(), 0)

    def allowed(self, budget: float) -> float:
        """What the charges of a pass may add up to."""
        if budget <= 0:
            return 0.0
        asked = math.log(budget)
        if not self.levels:
            return math.exp((asked - self.offset) / self.slope)
        for (spent, lost), (more, worse) in pairwise(self.levels):
            if lost <= asked <= worse:
                return math.exp(spent + (asked - lost) / (worse - lost) * (more - spent))
        spent, lost = self.levels[0 if asked < self.levels[0][1] else -1]
        return math.exp(spent + (asked - lost) / self.slope)

    def about(self) -> dict[str, Any]:
        """For the description of the file that it is kept in."""
        plain = {name: [list(part) for part in getattr(self, name)] for name in ("knots", "rises", "levels")}
        return asdict(self) | plain | {"features": list(FEATURES)}

    @classmethod
    def from_about(cls, about: Mapping[str, Any]) -> "Calibration":
        """What `about` described."""
        if list(about.get("features", ())) != list(FEATURES):
            raise PairmiError(f"Calibration: expected the features {', '.join(FEATURES)}, got {about.get('features')}; calibrate again")
        knots, rises, levels = (tuple(map(tuple, about.get(name, ()))) for name in ("knots", "rises", "levels"))
        return cls(float(about["bias"]), knots, rises, float(about["offset"]), float(about["slope"]), levels)
