"""What the rules share: candidates in order, the first of them taken, and the reasons of those that wait."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Literal, Protocol, get_args, get_origin, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pairmi.info import confidence, entropy_of, margin
from pairmi.types import PairMatrix, PairmiError, PerPosition, Positions, Ranks, Reason, Selection, Selector, State, Turn, Waiting

By = Literal["confidence", "margin", "entropy", "random"]
TOLERANCE = 1e-9  # nats: what rounding may add to a sum of charges


@dataclass(frozen=True)
class AtLeast:
    """The least value of a parameter, with its unit."""

    minimum: int
    unit: str = ""
    finite: bool = False


Nats = Annotated[float, AtLeast(0, " nats")]
NotNegative = Annotated[float, AtLeast(0)]
Weight = Annotated[float, AtLeast(0, finite=True)]
Count = Annotated[int, AtLeast(1)]


@runtime_checkable
class Rule(Selector, Protocol):
    """A rule that refuses parameters below their minimum, or not a number, or none of a `Literal`'s values."""

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            name, value, allowed = field.name, getattr(self, field.name), get_args(field.type)
            if get_origin(field.type) is Literal and value not in allowed:
                raise PairmiError(f"{type(self).__name__}({name}={value!r}): {name} must be one of {', '.join(allowed)}")
            for least in allowed[1:]:
                if isinstance(least, AtLeast) and not value >= least.minimum:
                    raise PairmiError(f"{type(self).__name__}({name}={value}): {name} must be >= {least.minimum}{least.unit}")
                if isinstance(least, AtLeast) and least.finite and value == math.inf:
                    raise PairmiError(f"{type(self).__name__}({name}={value}): {name} must be finite; to allow no dependence, budget=0")


def score(by: By, turn: Turn) -> PerPosition:
    """How sure the model is of each position: the higher the more confident."""
    log_probs = turn.prediction.log_probs
    if by == "random":
        return turn.rng.uniform("order", log_probs.shape[1])
    if by == "entropy":
        return -entropy_of(turn.prediction)
    return margin(log_probs) if by == "margin" else confidence(log_probs)


def ranked(scores: PerPosition, masked: Positions) -> Ranks:
    """The positions of each row by falling score, the masked ones first, equals from left to right."""
    return torch.where(masked, scores.double(), -torch.inf).argsort(dim=1, descending=True, stable=True)


def take(
    order: Ranks, count: Int[Tensor, " B"], masked: Positions, reason: Reason, amount: PerPosition, state: State | None = None
) -> Selection:
    """The first `count` (at least one) of the ranked candidates of each row; all others wait for one reason."""
    rank = torch.empty_like(order).scatter(1, order, torch.arange(order.shape[1], device=order.device).expand_as(order))
    chosen = (rank < count.clamp_min(1)[:, None]) & masked
    reasons = torch.full_like(order, reason).masked_fill(chosen, Reason.FILLED).masked_fill(~masked, Reason.GIVEN)
    return Selection(chosen, torch.where(chosen, rank, -1), Waiting(reasons, torch.full_like(order, -1), amount.double()), state or {})


Admit = Callable[[Int[Tensor, " B"], Float[Tensor, "B L"], Positions, Tensor], tuple[Bool[Tensor, " B"], Tensor]]


def greedily(order: Ranks, turn: Turn, mi: PairMatrix, carry: Float[Tensor, "B N"], admit: Admit) -> tuple[Positions, Ranks, Tensor]:
    """Try the candidates of all rows, rank by rank; take those that `admit` accepts, and the first if it accepts none.

    `admit(candidate [B], its MI with every position [B, L], chosen so far [B, L], carry [B, N])` says which rows take their
    candidate and what the carry becomes if they do. Returns what was chosen, in which order, and the last carry.
    """
    masked = turn.prediction.masked
    chosen, matrix = torch.zeros_like(masked), mi.double()
    every = torch.arange(len(order), device=order.device)
    open_count = masked.sum(1)
    decisions = [torch.zeros_like(masked[:, :0])]
    most = turn.most if turn.most is not None else int(open_count.max()) if len(order) else 0
    for rank in range(most):
        candidate = order[:, rank]
        accepted, after = admit(candidate, matrix[every, candidate], chosen, carry)
        accepted = (accepted & (rank < open_count))[:, None]
        chosen.scatter_(1, candidate[:, None], accepted)
        carry = torch.where(accepted, after, carry)
        decisions.append(accepted)
    taken = torch.cat(decisions, dim=1)
    none = ~taken.any(1) & (open_count > 0)
    taken[:, :1] |= none[:, None]
    tried = order[:, : taken.shape[1]]
    ranks = torch.full_like(order, -1).scatter(1, tried, torch.where(taken, taken.long().cumsum(1) - 1, -1))
    return ranks >= 0, ranks, carry


def waiting_for(
    masked: Positions, chosen: Positions, mi: PairMatrix, otherwise: Int[Tensor, "B L"], decisive: Positions, amount: PerPosition
) -> Waiting:
    """Reasons under a rule that looks at pairs: where dependence was decisive, the strongest partner that was filled instead."""
    strongest = torch.where(chosen[:, None, :], mi, 0).max(2)
    dependent = decisive & (strongest.values > 0)
    reason = torch.where(dependent, int(Reason.DEPENDENT), otherwise)
    return Waiting(
        reason.masked_fill(chosen, Reason.FILLED).masked_fill(~masked, Reason.GIVEN),
        torch.where(dependent & masked & ~chosen, strongest.indices, -1),
        torch.where(dependent, strongest.values.double(), amount),
    )
