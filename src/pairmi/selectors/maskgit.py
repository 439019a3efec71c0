"""A fixed number of passes on a cosine schedule."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from pairmi.draw import gumbel
from pairmi.info import confidence
from pairmi.selectors.ranking import Count, NotNegative, Rule, ranked, take
from pairmi.types import Reason, Selection, Turn


@dataclass(frozen=True)
class MaskGIT(Rule):
    """Leave cos(pi t / 2T) of the unknowns open after pass t of T; most confident first, with Gumbel noise that anneals to 0."""

    steps: Count = 16
    noise: NotNegative = 1.0
    reference: ClassVar[str] = "Chang et al. 2022 (MaskGIT)"

    def __call__(self, turn: Turn) -> Selection:
        """Remembers how many positions each row had open at the start, and how many passes it has had."""
        masked = turn.prediction.masked
        start = turn.state.get("start", masked.sum(1))
        done = turn.state.get("done", torch.zeros_like(start)) + 1
        progress = (done.double() / self.steps).clamp_max(1)
        count = masked.sum(1) - torch.floor(start * torch.cos(0.5 * torch.pi * progress) + 1e-9).long()
        scores = confidence(turn.prediction.log_probs).log() + self.noise * (1 - progress)[:, None] * gumbel(
            turn.rng.uniform("order", masked.shape[1])
        )
        return take(ranked(scores, masked), count, masked, Reason.OUTRANKED, scores, {"start": start, "done": done})
