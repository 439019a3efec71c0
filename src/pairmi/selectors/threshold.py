"""Everything above a confidence threshold."""

from dataclasses import dataclass
from typing import ClassVar

from pairmi.info import confidence
from pairmi.selectors.ranking import NotNegative, Rule, ranked, take
from pairmi.types import Reason, Selection, Turn


@dataclass(frozen=True)
class Threshold(Rule):
    """Fill every position whose likeliest symbol has at least this probability, and the most confident one always."""

    threshold: NotNegative = 0.99
    reference: ClassVar[str] = "Wu et al. 2025 (Fast-dLLM)"

    def __call__(self, turn: Turn) -> Selection:
        """All with c_i >= threshold."""
        masked, sure = turn.prediction.masked, confidence(turn.prediction.log_probs)
        count = ((sure >= self.threshold) & masked).sum(1)
        return take(ranked(sure, masked), count, masked, Reason.UNCERTAIN, 1 - sure)
