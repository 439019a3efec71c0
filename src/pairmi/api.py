"""What a user calls: canvases in (text or tokens, one or many, of any lengths), mutual information or filled canvases out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pairmi import decoding
from pairmi.counting import Counting
from pairmi.draw import Streams
from pairmi.info import entropy
from pairmi.mi.probe import Form, Probe
from pairmi.spec import Model, rule, with_head
from pairmi.types import Backbone, Decoded, Limited, Objecting, PairmiError, Prediction, Reason, Selector, Step, Tokens

Canvas = str | Int[Tensor, " L"]


@dataclass(frozen=True)
class MI:
    """Pairwise mutual information of one canvas, in nats: probed, or estimated by a head."""

    matrix: Float[Tensor, "L L"]  # symmetric, >= 0, zero outside unknown x unknown
    bound: Float[Tensor, "L L"]  # entrywise: what pruning can have changed; infinite for an estimate, which certifies nothing
    entropies: Float[Tensor, " L"]
    conditional_entropies: Float[Tensor, "L L"] | None  # [i, j]: H(X_j | X_i, known); this and the next two are None for an estimate
    asymmetry: float | None  # the mean of |I_ij - I_ji| over unknown pairs: 0 for a consistent model
    inconsistency: float | None  # the mean of KL(mixture of conditionals || marginal): 0 for a consistent model
    rows: int  # sequences evaluated, the base pass included

    def strongest(self, count: int = 10) -> list[tuple[int, int, float]]:
        """The pairs that depend on each other most: (i, j, nats), i < j."""
        upper = torch.triu(self.matrix, 1).flatten()
        top = upper.topk(min(count, int((upper > 0).sum())))
        length = len(self.matrix)
        return [(place // length, place % length, value) for place, value in zip(top.indices.tolist(), top.values.tolist(), strict=True)]


@dataclass(frozen=True)
class Filled:
    """One decoded canvas."""

    text: str
    tokens: Int[Tensor, " L"]
    passes: int  # backbone calls that this canvas took part in, without the probes
    rows: int  # sequences evaluated for it, without the probes
    steps: tuple["Pass", ...]  # empty unless asked for


@dataclass(frozen=True)
class Pass:
    """What happened to one canvas in one pass."""

    filled: dict[int, str]  # position -> symbol
    waiting: dict[int, str]  # position -> why it was not filled
    text: str  # afterwards


def tokenise(model: Backbone, canvas: Canvas, name: str = "canvas") -> Int[Tensor, " L"]:
    """One canvas as tokens, checked: right length, known symbols, something to fill, no contradiction."""
    tokens = model.vocab.encode(canvas.strip(), name) if isinstance(canvas, str) else canvas
    if tokens.ndim != 1 or tokens.is_floating_point():
        raise PairmiError(f"{name}: expected a string or a vector of token ids, got {list(tokens.shape)} of {tokens.dtype}")
    if not len(tokens):
        raise PairmiError(f"{name}: empty; expected {f'{model.length} positions' if model.length else 'at least one position'}")
    if model.length is not None and len(tokens) != model.length:
        raise PairmiError(f"{name}: expected {model.length} positions, got {len(tokens)}")
    if isinstance(model, Limited) and model.longest is not None and len(tokens) > model.longest:
        raise PairmiError(f"{name}: {len(tokens)} positions are too many for this model; at most {model.longest}; cut the sequence")
    if int(tokens.min()) < 0 or int(tokens.max()) > model.vocab.size:
        raise PairmiError(
            f"{name}: token ids must be 0..{model.vocab.size} ({model.vocab.size} = unknown), got {int(tokens.min())}..{int(tokens.max())}"
        )
    if not bool((tokens == model.vocab.size).any()):
        raise PairmiError(f"{name}: every position is given, nothing is unknown; mark unknown positions with '{model.vocab.blanks[0]}'")
    complaint = model.validate(tokens) if isinstance(model, Objecting) else None
    if complaint is not None:
        raise PairmiError(f"{name}: contradiction: {complaint}")
    return tokens.long()


def _many(model: Backbone, canvas: str | list[Canvas] | Tensor) -> tuple[list[Int[Tensor, " L"]], bool]:
    """A list of checked canvases, and whether it was just one."""
    canvases: list[Canvas] = [canvas] if isinstance(canvas, str) or (isinstance(canvas, Tensor) and canvas.ndim == 1) else list(canvas)
    single = not isinstance(canvas, list) and len(canvases) == 1 and canvases[0] is canvas
    if not canvases:
        raise PairmiError("canvases: expected at least one, got none")
    names = ["canvas"] if single else [f"canvas {n}" for n in range(len(canvases))]
    return [tokenise(model, one, name) for one, name in zip(canvases, names, strict=True)], single


def _buckets(canvases: Sequence[Tensor]) -> list[Int[Tensor, " N"]]:
    """The places of the canvases of each length."""
    lengths = torch.tensor([len(canvas) for canvas in canvases])
    return [torch.nonzero(lengths == length)[:, 0] for length in lengths.unique()]


@overload
def mutual_information(
    model: Backbone, canvas: str, *, form: Form = ..., floor: float = ..., batch_size: int = ..., head: str | None = ...
) -> MI: ...
@overload
def mutual_information(
    model: Backbone, canvas: list[Canvas], *, form: Form = ..., floor: float = ..., batch_size: int = ..., head: str | None = ...
) -> list[MI]: ...
@overload
def mutual_information(
    model: Backbone, canvas: Tensor, *, form: Form = ..., floor: float = ..., batch_size: int = ..., head: str | None = ...
) -> MI | list[MI]: ...
def mutual_information(
    model: Backbone,
    canvas: str | list[Canvas] | Tensor,
    *,
    form: Form = "joint",
    floor: float = 0.01,
    batch_size: int = 256,
    head: str | None = None,
) -> MI | list[MI]:
    """Pairwise mutual information between the unknown positions, by probing the model; one canvas or a list of them.

    `floor` (nats) bounds what pruning may change in a directed entry; 0 probes every symbol of every unknown position. With `head`
    (the name of an embedded model, or a file) it is estimated from one pass instead.
    """
    canvases, single = _many(model, canvas)
    guided = None if head is None else with_head(model if isinstance(model, Model) else Model(model), head)
    probe, results = Probe(form, floor, batch_size), dict[int, MI]()
    for bucket in _buckets(canvases):
        together = max(1, min(batch_size, 4_000_000 // len(canvases[int(bucket[0])]) ** 2))  # bounds the memory of the pair matrices
        for part in bucket.split(together):
            tokens = torch.stack([canvases[n] for n in part.tolist()])
            found = _probed(model, tokens, probe) if guided is None else estimated(guided, tokens)
            results |= dict(zip(part.tolist(), found, strict=True))
    ordered = [results[n] for n in range(len(canvases))]
    return ordered[0] if single else ordered


def estimated(model: Model, tokens: Tokens, prediction: Prediction | None = None) -> list[MI]:
    """What the model's head says of each row of a batch, from the prediction that one already has or from a pass."""
    if model.head is None:
        raise PairmiError(f"model {model.name!r} has no head; load(..., head=FILE), or probe it")
    prediction = prediction or model(tokens)
    matrices = model.head(prediction, model, Streams(0, torch.arange(len(tokens))))
    entropies = torch.where(prediction.masked, entropy(prediction.log_probs), 0)
    none = torch.full_like(matrices, torch.inf)
    return [MI(matrices[n], none[n], entropies[n], None, None, None, 1) for n in range(len(tokens))]


def _probed(model: Backbone, tokens: Tokens, probe: Probe) -> list[MI]:
    """One result for each row of a batch."""
    meter = Counting(model, probe.batch_rows)
    prediction = meter(tokens)
    probed = probe.measure(prediction, meter)
    unknown = prediction.masked.sum(1)
    pairs = (unknown * (unknown - 1)).clamp_min(1)
    asymmetry = (probed.directed - probed.directed.transpose(1, 2)).abs().sum((1, 2)) / pairs
    inconsistency = probed.inconsistency.sum((1, 2)) / pairs
    return [
        MI(
            probed.matrix[n].clamp_min(0),
            probed.bound[n],
            probed.entropies[n],
            probed.conditional_entropies[n],
            float(asymmetry[n]),
            float(inconsistency[n]),
            int(probed.rows[n]) + 1,
        )
        for n in range(len(tokens))
    ]


@overload
def decode(
    model: Backbone,
    canvas: str,
    rule: str | Selector = ...,
    *,
    verify: bool = ...,
    seed: int = ...,
    temperature: float = ...,
    greedy: bool = ...,
    accept: float = ...,
    batch_size: int = ...,
    steps: bool = ...,
    index: list[int] | None = ...,
) -> Filled: ...
@overload
def decode(
    model: Backbone,
    canvas: list[Canvas],
    rule: str | Selector = ...,
    *,
    verify: bool = ...,
    seed: int = ...,
    temperature: float = ...,
    greedy: bool = ...,
    accept: float = ...,
    batch_size: int = ...,
    steps: bool = ...,
    index: list[int] | None = ...,
) -> list[Filled]: ...
@overload
def decode(
    model: Backbone,
    canvas: Tensor,
    rule: str | Selector = ...,
    *,
    verify: bool = ...,
    seed: int = ...,
    temperature: float = ...,
    greedy: bool = ...,
    accept: float = ...,
    batch_size: int = ...,
    steps: bool = ...,
    index: list[int] | None = ...,
) -> Filled | list[Filled]: ...
def decode(
    model: Backbone,
    canvas: str | list[Canvas] | Tensor,
    rule: str | Selector = "mi-guided",
    *,
    verify: bool = False,
    seed: int = 0,
    temperature: float = 1.0,
    greedy: bool = False,
    accept: float = 0.999,
    batch_size: int = 256,
    steps: bool = True,
    index: list[int] | None = None,
) -> Filled | list[Filled]:
    """Fill the unknown positions of one canvas, or of a list of canvases of any lengths, by a rule.

    `verify` takes the rule's choice as a draft and commits what one-by-one decoding would have drawn. `greedy` takes the likeliest
    symbols. Each canvas draws from the stream (seed, its number in `index`, or its place in the list): no result depends on the other
    canvases, nor on `batch_size`. `steps` keeps what happened in each pass.
    """
    if batch_size < 1:
        raise PairmiError(f"decode: batch_size must be >= 1, got {batch_size}")
    canvases, single = _many(model, canvas)
    selector = resolve(rule, model)
    sampling = decoding.Sampling(seed, temperature, greedy, verify, accept)
    numbers = torch.arange(len(canvases)) if index is None else torch.tensor(index)
    results: dict[int, Filled] = {}
    for bucket in _buckets(canvases):
        tokens = torch.stack([canvases[n] for n in bucket.tolist()])
        for part in torch.arange(len(bucket)).split(batch_size):
            out = decoding.decode(model, tokens[part], selector, sampling, numbers[bucket[part]], batch_size, keep_steps=steps)
            results |= {int(bucket[part[row]]): _filled(model, out, row) for row in range(len(part))}
    ordered = [results[n] for n in range(len(canvases))]
    return ordered[0] if single else ordered


def resolve(spec: str | Selector, model: Backbone) -> Selector:
    """A rule, from its specification if it is one."""
    if not isinstance(spec, str):
        return spec
    return rule(spec, model if isinstance(model, Model) else Model(model))


def _filled(model: Backbone, out: Decoded, row: int) -> Filled:
    """One row of a decoded batch."""
    passes = tuple(in_words(model, step, int(place)) for step in out.steps for place in torch.nonzero(step.rows == row)[:, 0])
    return Filled(model.vocab.decode(out.tokens[row]), out.tokens[row], int(out.passes[row]), int(out.rows[row]), passes)


def in_words(model: Backbone, step: Step, place: int) -> Pass:
    """One row of a step, in words."""
    after = step.tokens[place]
    filled = {i: model.vocab.symbols[int(after[i])] for i in torch.nonzero(step.committed[place])[:, 0].tolist()}
    still_open = torch.nonzero(after == model.vocab.size)[:, 0].tolist()
    name = model.place if isinstance(model, Model) else str
    return Pass(filled, {i: why(step, place, i, name) for i in still_open}, model.vocab.decode(after))


def why(step: Step, row: int, position: int, name: Callable[[int], str] = str) -> str:
    """Why a position was not filled in this pass; `name` says what people call a position."""
    waiting = step.selection.waiting
    amount, blocker = float(waiting.amount[row, position]), int(waiting.blocker[row, position])
    return {
        Reason.GIVEN: "it is given",
        Reason.FILLED: "its draft was not accepted",
        Reason.OUTRANKED: "enough others came first",
        Reason.UNCERTAIN: f"too uncertain ({amount:.2f})",
        Reason.DEPENDENT: f"depends on {name(blocker)} by {amount:.2f} nats",
        Reason.BUDGET: f"the budget is used up (it needs {amount:.2f} nats)",
    }[Reason(int(waiting.reason[row, position]))]
