"""A model: a backbone with what else is known of it, its task, its head, where it lives."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from pairmi.types import Backbone, Charge, Coupling, PairmiError, PairwiseMI, Places, Prediction, Tokens, Vocab


@runtime_checkable
class Task(Protocol):
    """What a domain knows of its sequences, beyond the alphabet; the defaults are those of one that knows nothing."""

    name: str = "sequences"
    decidable: ClassVar[bool] = False  # whether a filled canvas is right or wrong: no `conflict` = right

    def position(self, index: int) -> str:
        """What people call a position; they count from 1."""
        return str(index + 1)

    def complaint(self, text: str, blanks: str) -> str | None:
        """What is wrong with the text of a canvas, with a remedy; None = nothing that this task knows better than the alphabet."""
        return None

    def conflict(self, canvas: Int[Tensor, " L"]) -> str | None:
        """Why nothing can complete this canvas, as far as one look tells; None = nothing speaks against it."""
        return None

    def search(self, canvas: Int[Tensor, " L"]) -> tuple[bool, str] | None:
        """Whether a canvas can be completed and what to say of it, after a search; None = there is nothing to say."""
        return None

    def judge(self, canvas: Int[Tensor, " L"], filled: Int[Tensor, " L"]) -> str | None:
        """What has become of a filled canvas, in a word or two, such as "solved"; None = there is no right and wrong."""
        return None

    def graph(self, length: int) -> Float[Tensor, "L L"] | None:
        """The structure that an expert would expect, 1 for each linked pair: the control `mi=structural`."""
        return None


class Sequences(Task):
    """Sequences of which nothing more is known."""


@runtime_checkable
class Around(Backbone, Protocol):
    """What is around another backbone, and itself one; all that it does not say is the inner one's."""

    backbone: Backbone

    @property
    def vocab(self) -> Vocab:
        """The alphabet."""
        return self.backbone.vocab

    @property
    def length(self) -> int | None:
        """The only length it takes; None = any."""
        return self.backbone.length


@dataclass(frozen=True)
class Wrapped(Around):
    """A backbone with something around its call: a stopwatch, a way out."""

    backbone: Backbone
    call: Callable[[Tokens], Prediction]

    def __call__(self, tokens: Tokens) -> Prediction:
        """One pass."""
        return self.call(tokens)


@dataclass(frozen=True)
class Model(Around):
    """A backbone with what else is known of it; itself a backbone."""

    backbone: Backbone
    name: str = "custom"
    task: Task = field(default_factory=Sequences)
    head: PairwiseMI | None = None  # a learned estimate that was made for this backbone
    calibration: Charge | None = None  # what `charge=calibrated` charges where members are drawn from their marginals
    residuals: Mapping[str, Charge] = field(default_factory=dict, hash=False)  # and what tables leave, by `draw`
    tables: Coupling | None = None  # learned tables that were made for this backbone: what `draw=coupled` draws by
    rule: str | None = None  # that it was tuned to: decodes where none is named
    longest: int | None = None  # the most positions it takes; None = no limit
    device: torch.device | None = None  # where it lives; None = where its parameters are

    def __repr__(self) -> str:
        length = self.length or (f"up to {self.longest}" if self.longest else "any number of")
        head = "with a head" if self.head is not None else "without a head"
        rule = "" if self.rule is None else f", tuned to {self.rule}"
        return f"Model({self.name!r}: {length} positions over {self.vocab.size} symbols, on {device_of(self)}, {head}{rule})"

    @property
    def graph(self) -> Float[Tensor, "L L"] | None:
        """The structure that an expert would expect, where the task knows one."""
        return None if self.length is None else self.task.graph(self.length)

    def __call__(self, tokens: Tokens) -> Prediction:
        """One pass, without gradients."""
        with torch.no_grad():
            return self.backbone(tokens)


def innermost(backbone: Backbone) -> Backbone:
    """What a model, a meter or another wrapper is around."""
    while isinstance(backbone, Around) and not isinstance(backbone, nn.Module):
        backbone = backbone.backbone
    return backbone


def device_of(backbone: Backbone) -> torch.device:
    """Where a backbone lives: where its model says, else where its first parameter or buffer is, else on the CPU."""
    if isinstance(backbone, Model) and backbone.device is not None:
        return backbone.device
    if isinstance(backbone, Around) and not isinstance(backbone, nn.Module):
        return device_of(backbone.backbone)
    first = next(chain(backbone.parameters(), backbone.buffers()), None) if isinstance(backbone, nn.Module) else None
    return torch.device("cpu") if first is None else first.device


def position_names(model: Backbone, length: int) -> tuple[str, ...]:
    """What people call the positions of a sequence: as its task says, or counted from 1."""
    task = model.task if isinstance(model, Model) else Sequences()
    return tuple(task.position(index) for index in range(length))


@runtime_checkable
class Selective(Protocol):
    """A backbone that can predict some positions without computing the logits of the others."""

    def at(self, tokens: Tokens, places: Places) -> Prediction:
        """The prediction of these positions of each row, in this order."""


def checked_answer(backbone: Backbone, answer: Any) -> Prediction:
    """What a backbone answered, which may be anybody's: a prediction, and in it tensors."""
    who = type(innermost(backbone)).__name__
    if not isinstance(answer, Prediction):
        got = type(answer).__name__
        raise PairmiError(f"{who}: expected a Prediction, got {got}; return pairmi.types.Prediction(tokens, log_probs, hidden)")
    if answer.hidden is None:
        raise PairmiError(f"{who}: expected hidden states, got None; give them, or a tensor of width 0: log_probs[..., :0]")
    for name, value in (("log_probs", answer.log_probs), ("hidden", answer.hidden)):
        if not isinstance(value, Tensor):
            raise PairmiError(f"{who}: expected {name} as a torch tensor, got {type(value).__name__}; torch.as_tensor makes it one")
    return answer


def predict_at(backbone: Backbone, tokens: Tokens, places: Places) -> Prediction:
    """What a backbone says of some positions of each row, computed only there where it can do so."""
    if isinstance(backbone, Model):
        with torch.no_grad():
            return predict_at(backbone.backbone, tokens, places)
    if isinstance(backbone, Selective):
        return checked_answer(backbone, backbone.at(tokens, places))
    whole, rows = checked_answer(backbone, backbone(tokens)), torch.arange(len(tokens), device=tokens.device)[:, None]
    attention = None if whole.attention is None else whole.attention[rows[:, :, None], places[:, :, None], places[:, None]]
    return Prediction(tokens.gather(1, places), whole.log_probs[rows, places], whole.hidden[rows, places], attention)


def selective(backbone: Backbone) -> bool:
    """Whether predicting some positions takes less than predicting all."""
    if isinstance(backbone, Wrapped | nn.Module) or not isinstance(backbone, Around):
        return isinstance(backbone, Selective)
    return selective(backbone.backbone)
