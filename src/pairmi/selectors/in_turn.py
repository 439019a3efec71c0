"""Any rule, one position at a time: what its verified drafts are distributed as, and what filling at once is measured against."""

from dataclasses import dataclass

import torch

from pairmi.selectors.ranking import ranked, take
from pairmi.types import Reason, Selection, Selector, Turn


@dataclass(frozen=True)
class InTurn:
    """What a rule chose is filled one position a pass, in the rule's order; only then its next choice counts.

    The rule is asked in every pass, so that it can follow the beliefs, and pays for it: what it says while its last choice is still being
    filled is dropped. Verified decoding differs in one thing: after a rejected draft it asks the rule anew.
    """

    rule: Selector

    def __call__(self, turn: Turn) -> Selection:
        """Remembers the ranks of what is still to be filled (-1 = nothing), beside all that the rule remembers."""
        state = dict(turn.state)
        left = state.pop("in turn", None)
        choice = self.rule(Turn(turn.prediction, turn.backbone, turn.rng, state))
        queue = choice.order if left is None else torch.where((left >= 0).any(1, keepdim=True), left, choice.order)
        masked = turn.prediction.masked
        order = ranked(torch.where(queue >= 0, -queue.double(), -torch.inf), masked)
        one = take(order, torch.ones_like(order[:, 0]), masked, Reason.OUTRANKED, choice.waiting.amount)
        return Selection(one.chosen, one.order, one.waiting, {**choice.state, "in turn": queue.masked_fill(one.chosen, -1)})
