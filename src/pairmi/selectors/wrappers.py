"""Any rule, changed: its members drawn from tables, filled one position at a time, or chosen block by block."""

from dataclasses import dataclass, replace

import torch

from pairmi.selectors.ranking import Count, Rule, ranked, take
from pairmi.types import Coupling, PairmiError, Reason, Selection, Selector, Turn


@dataclass(frozen=True)
class Coupled:
    """The rule's own choice; a coupling then shifts the marginal of each member by what was drawn before it in the same pass."""

    rule: Selector
    coupling: Coupling

    def __call__(self, turn: Turn) -> Selection:
        """Choose as the rule does."""
        return replace(self.rule(turn), coupling=self.coupling)


@dataclass(frozen=True)
class OneAtATime:
    """What a rule chose is filled one position a pass, in the rule's order; only then its next choice counts.

    Verified drafts are so distributed as long as they are accepted; after a rejected one the rule is asked again, while here its choice is
    filled to the end. The rule is asked in every pass, and pays for it; while its last choice is still being filled, what it says
    and what it would remember are dropped.
    """

    rule: Selector

    def __call__(self, turn: Turn) -> Selection:
        """Remembers the ranks of what is still to be filled (-1 = nothing), beside all that the rule remembers."""
        before, masked = dict(turn.state), turn.prediction.masked
        left = before.pop("in turn", torch.full_like(turn.prediction.tokens, -1))
        busy = (left >= 0).any(1)
        choice = self.rule(replace(turn, state=before))
        queue = torch.where(busy[:, None], left, choice.order)
        order = ranked(torch.where(queue >= 0, -queue.double(), -torch.inf), masked)
        one = take(order, torch.ones_like(order[:, 0]), masked, Reason.OUTRANKED, choice.waiting.amount)
        memory = dict(choice.state)
        for name in memory.keys() & before.keys():
            held = busy.view(-1, *(1 for _ in memory[name].shape[1:]))
            memory[name] = torch.where(held, before[name], memory[name])
        return Selection(one.chosen, one.order, one.waiting, memory | {"in turn": queue.masked_fill(one.chosen, -1)})


@dataclass(frozen=True)
class InBlocks(Rule):
    """The unknown positions in order, in runs of `block`: the loop shows the rule a window of one run at a time."""

    rule: Selector
    block: Count

    def __call__(self, turn: Turn) -> Selection:
        """Never: who calls rules by themselves, as exact worlds do, looks at whole canvases."""
        raise PairmiError(
            f"InBlocks(block={self.block}): only decode and price go block by block; leave block= out to look at whole canvases"
        )
