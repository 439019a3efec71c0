"""Positions whose belief is sure and has stopped moving."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from pairmi.info import confidence, kl
from pairmi.selectors.ranking import Count, Nats, NotNegative, Rule, ranked, take
from pairmi.types import Reason, Selection, Turn


@dataclass(frozen=True)
class Klass(Rule):
    """Fill what is above `threshold` and moved less than `drift` nats in each of the last `history` passes; else the k most confident."""

    threshold: NotNegative = 0.9
    drift: Nats = 0.01
    history: Count = 2
    k: Count = 1
    reference: ClassVar[str] = "Kim et al. 2025 (KLASS, arXiv 2511.05664)"

    def __call__(self, turn: Turn) -> Selection:
        """Remembers the last belief of each row and for how many passes each position has been calm."""
        masked, log_probs = turn.prediction.masked, turn.prediction.log_probs
        calm = torch.zeros_like(turn.prediction.tokens)
        if "belief" in turn.state:
            still = kl(log_probs, turn.state["belief"]) < self.drift
            calm = torch.where(still, turn.state["calm"] + 1, 0)
        sure = confidence(log_probs)
        stable = (sure > self.threshold) & (calm >= self.history) & masked
        count = torch.where(stable.any(1), stable.sum(1), self.k)
        order = ranked(sure + stable.double(), masked)  # the stable ones first
        return take(order, count, masked, Reason.UNCERTAIN, 1 - sure, {"belief": log_probs, "calm": calm})
