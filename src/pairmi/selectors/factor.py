"""A confidence threshold that rises with the number of positions filled at once."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from pairmi.info import confidence
from pairmi.selectors.ranking import NotNegative, Rule, ranked, take
from pairmi.types import Reason, Selection, Turn


@dataclass(frozen=True)
class Factor(Rule):
    """Fill the n most confident positions, n the largest with (m + 1)(1 - c_m) <= factor for every m up to n."""

    factor: NotNegative = 0.05
    reference: ClassVar[str] = "Wu et al. 2025 (Fast-dLLM)"

    def __call__(self, turn: Turn) -> Selection:
        """The bound must hold for all members, the last one included."""
        masked, sure = turn.prediction.masked, confidence(turn.prediction.log_probs)
        order = ranked(sure, masked)
        place = torch.arange(1, order.shape[1] + 1, device=order.device)
        holds = ((place + 1) * (1 - sure.gather(1, order)) <= self.factor) & masked.gather(1, order)
        return take(order, holds.long().cumprod(1).sum(1), masked, Reason.UNCERTAIN, 1 - sure)
