"""What happened in a pass, in words."""

from collections.abc import Iterator, Sequence

import torch

from pairmi.model import position_names
from pairmi.results import Pass, Step
from pairmi.types import Backbone, Reason


def in_words(model: Backbone, step: Step, place: int) -> Pass:
    """One row of a step, in words: keys are positions from 0; words call a position what people do, and add that index to a number."""
    after, committed = step.tokens[place].cpu(), step.committed[place].cpu()
    filled = {i: model.vocab.symbols[int(after[i])] for i in torch.nonzero(committed)[:, 0].tolist()}
    still_open = torch.nonzero(after == model.vocab.size)[:, 0].tolist()
    return Pass(filled, dict(_reasons(model, step, place, still_open)), model.vocab.decode(after))


def _reasons(model: Backbone, step: Step, row: int, positions: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Why these positions were not filled in this pass."""
    names = position_names(model, step.tokens.shape[1])
    reasons, blockers, amounts = (x[row].tolist() for x in (step.waiting.reason, step.waiting.blocker, step.waiting.amount))
    for position in positions:
        amount, blocker = amounts[position], blockers[position]
        index = f" (index {blocker})" if names[blocker].isdecimal() else ""
        yield (
            position,
            {
                Reason.GIVEN: "it is given",
                Reason.FILLED: "its draft was not accepted",
                Reason.OUTRANKED: "enough others came first",
                Reason.UNCERTAIN: f"too uncertain ({amount:.3g}: nats of entropy or 1 - confidence, as the rule judges)",
                Reason.DEPENDENT: f"depends on {names[blocker]} by {amount:.3g} nats{index}",
                Reason.LATER: "it is in a later block",
                Reason.BUDGET: f"the budget is used up (it needs {amount:.3g} nats)",
            }[Reason(reasons[position])],
        )
