"""What happened in a pass, in words."""

from collections.abc import Callable, Iterator, Sequence

import torch

from pairmi.model import Model
from pairmi.results import Pass, Step
from pairmi.types import Backbone, Reason


def in_words(model: Backbone, step: Step, place: int) -> Pass:
    """One row of a step, in words."""
    after, committed = step.tokens[place].cpu(), step.committed[place].cpu()
    filled = {i: model.vocab.symbols[int(after[i])] for i in torch.nonzero(committed)[:, 0].tolist()}
    still_open = torch.nonzero(after == model.vocab.size)[:, 0].tolist()
    return Pass(filled, dict(_reasons(model, step, place, still_open)), model.vocab.decode(after))


def _reasons(model: Backbone, step: Step, row: int, positions: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Why these positions were not filled in this pass."""
    name: Callable[[int], str] = model.task.position if isinstance(model, Model) else str
    reasons, blockers, amounts = (x[row].tolist() for x in (step.waiting.reason, step.waiting.blocker, step.waiting.amount))
    for position in positions:
        amount, blocker = amounts[position], blockers[position]
        yield (
            position,
            {
                Reason.GIVEN: "it is given",
                Reason.FILLED: "its draft was not accepted",
                Reason.OUTRANKED: "enough others came first",
                Reason.UNCERTAIN: f"too uncertain ({amount:.3g})",
                Reason.DEPENDENT: f"depends on {name(blocker)} by {amount:.3g} nats",
                Reason.LATER: "it is in a later block",
                Reason.BUDGET: f"the budget is used up (it needs {amount:.3g} nats)",
            }[Reason(reasons[position])],
        )
