"""What a user calls: canvases in (text or tokens, one or many, of any lengths), mutual information or filled canvases out."""

from dataclasses import dataclass
from typing import Any, Protocol, TypedDict, Unpack, overload, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from pairmi import decoding
from pairmi.blocks import Window, checked_block, leftmost
from pairmi.canvases import checked_model, continuation, many, symbol_id
from pairmi.commit import Sampling
from pairmi.counting import Counting
from pairmi.draw import Streams
from pairmi.explain import in_words
from pairmi.info import entropy_of
from pairmi.loading import with_head
from pairmi.mi.probe import Form, Probe
from pairmi.model import Model, device_of
from pairmi.results import Result
from pairmi.spec import rule as parse_rule
from pairmi.types import Backbone, PairmiError, Prediction, Selector, Tokens

PAIRS = 4_000_000  # entries of pair matrices that are in memory at once


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
    note: str | None = None  # why an estimate is to be doubted here: the canvas is unlike what its head was trained on
    positions: tuple[int, ...] | None = None  # of one block: where the rows of the matrix stand in the canvas; None = as they are

    def __repr__(self) -> str:
        unknown, top = int((self.entropies > 0).sum()), self.strongest(1)
        said = f"strongest {top[0][0]}-{top[0][1]} with {top[0][2]:.3g} nats" if top else "nothing depends on anything"
        return f"MI({len(self.matrix)} positions, {unknown} uncertain; {said}; {self.rows} rows)"

    def strongest(self, count: int = 10) -> list[tuple[int, int, float]]:
        """The pairs that depend on each other most: (i, j, nats), i < j, positions from 0."""
        if count < 0:
            raise PairmiError(f"strongest: count must be >= 0, got {count}")
        upper = torch.triu(self.matrix, 1).flatten()
        top = upper.topk(min(count, int((upper > 0).sum())))
        length, at = len(self.matrix), self.positions or range(len(self.matrix))
        return [
            (at[place // length], at[place % length], value) for place, value in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        ]


@runtime_checkable
class Cautious(Protocol):
    """An estimate that knows what it was trained on."""

    def outside(self, canvases: Prediction | Tokens) -> str | None:
        """What about canvases is unlike all that it has seen; None = nothing."""
        ...


class ProbeOptions(TypedDict, total=False):
    """The options of `mutual_information`."""

    form: Form
    floor: float
    batch_size: int
    head: str | None
    block: int | None


class DecodeOptions(TypedDict, total=False):
    """The options of `decode`."""

    verify: bool
    seed: int
    temperature: float
    greedy: bool
    accept: float
    batch_size: int
    steps: bool
    index: list[int] | None
    prompt: str | list[str] | None
    new_tokens: int
    chat: bool
    stop: str | int | None


@overload
def mutual_information(model: Backbone, canvas: str, **options: Unpack[ProbeOptions]) -> MI: ...
@overload
def mutual_information(model: Backbone, canvas: list[Any], **options: Unpack[ProbeOptions]) -> list[MI]: ...
@overload
def mutual_information(model: Backbone, canvas: Any, **options: Unpack[ProbeOptions]) -> Any: ...
def mutual_information(
    model: Any,
    canvas: Any,
    *,
    form: Form = "joint",
    floor: float = 0.01,
    batch_size: int = 256,
    head: str | None = None,
    block: int | None = None,
) -> Any:
    """Pairwise mutual information between the unknown positions, by probing the model; one canvas or a list of them.

    `floor` (nats) bounds what pruning may change in a directed entry; 0 probes every symbol of every unknown position. With `head`
    (the name of an embedded model, or a file) it is estimated from one pass instead. With `block` only the first so many unknown positions
    of a canvas are looked at, and the model computes nothing of the others: the matrix is of these `positions`.
    """
    model = checked_model(model)
    canvases, single = many(model, canvas)
    guided = None if head is None else with_head(model if isinstance(model, Model) else Model(model), head)
    probe, results = Probe(form, floor, batch_size), dict[int, MI]()
    size = max(len(one) for one in canvases) if block is None else checked_block(block, canvases)
    most = max(1, min(batch_size, PAIRS // size**2))
    for batch in decoding.batches(canvases, most):
        tokens = torch.stack([canvases[n] for n in batch]).to(device_of(model))
        window = None if block is None else Window(guided or model, tokens, leftmost(tokens, model.vocab.size, block))
        found = _probed(model, tokens, probe, window) if guided is None else estimated(guided, tokens, window=window)
        results |= dict(zip(batch, found, strict=True))
    ordered = [results[n] for n in range(len(canvases))]
    return ordered[0] if single else ordered


def estimated(model: Model, tokens: Tokens, prediction: Prediction | None = None, window: Window | None = None) -> list[MI]:
    """What the model's head says of each row of a batch, from the prediction that one already has or from a pass."""
    if model.head is None:
        raise PairmiError(f"model {model.name!r} has no head; load(..., head=FILE), or probe it")
    meter, tokens = Counting(window or model), tokens.to(device_of(model))
    prediction = prediction or meter(tokens if window is None else window.tokens)
    matrices = model.head(prediction, meter, Streams(0, torch.arange(len(tokens), device=tokens.device))).cpu()
    entropies = torch.where(prediction.masked, entropy_of(prediction), 0).cpu()
    meter.complain()
    none, head = torch.full_like(matrices, torch.inf), model.head
    notes = [head.outside(row[None]) if isinstance(head, Cautious) else None for row in tokens.cpu()]
    where = _positions(window, len(tokens))
    return [MI(matrices[n], none[n], entropies[n], None, None, None, 1, notes[n], where[n]) for n in range(len(tokens))]


def _positions(window: Window | None, rows: int) -> list[Any]:
    """Where the windows of a batch stand."""
    return [None] * rows if window is None else [tuple(places) for places in window.places.tolist()]


def _probed(model: Backbone, tokens: Tokens, probe: Probe, window: Window | None = None) -> list[MI]:
    """One result for each row of a batch."""
    meter = Counting(window or model, probe.batch_rows)
    prediction = meter(tokens if window is None else window.tokens)
    probed = probe.measure(prediction, meter)
    meter.complain()
    unknown = prediction.masked.sum(1)
    pairs = (unknown * (unknown - 1)).clamp_min(1)
    asymmetry = (probed.directed - probed.directed.transpose(1, 2)).abs().sum((1, 2)) / pairs
    inconsistency = probed.inconsistency.sum((1, 2)) / pairs
    parts = (probed.matrix.clamp_min(0), probed.bound, probed.entropies, probed.conditional_entropies)
    numbers = (
        asymmetry.tolist(),
        inconsistency.tolist(),
        (probed.rows + 1).tolist(),
        [None] * len(tokens),
        _positions(window, len(tokens)),
    )
    return [MI(*row) for row in zip(*(part.cpu() for part in parts), *numbers, strict=True)]


@overload
def decode(model: Backbone, canvas: str, rule: str | Selector | None = ..., **options: Unpack[DecodeOptions]) -> Result: ...
@overload
def decode(model: Backbone, canvas: list[Any], rule: str | Selector | None = ..., **options: Unpack[DecodeOptions]) -> list[Result]: ...
@overload
def decode(model: Backbone, canvas: Any = ..., rule: str | Selector | None = ..., **options: Unpack[DecodeOptions]) -> Any: ...
def decode(
    model: Any,
    canvas: Any = None,
    rule: Any = None,
    *,
    verify: bool = False,
    seed: int = 0,
    temperature: float = 1.0,
    greedy: bool = False,
    accept: float = 0.999,
    batch_size: int = 256,
    steps: bool = False,
    index: list[int] | None = None,
    prompt: Any = None,
    new_tokens: int = 32,
    chat: bool = False,
    stop: str | int | None = None,
) -> Any:
    """Fill the unknown positions of one canvas (gives a `Result`), or of a list of any lengths (a list), by a rule.

    Without one: by the rule that the model was tuned to (`model.rule`), else by `mi-guided`.

    `verify` takes the rule's choice as a draft and commits what follows the distribution of sequential decoding in the rule's order.
    `greedy` takes the likeliest symbols. `temperature` is for the draws alone: a rule judges by the model's own probabilities. Each canvas
    draws from the stream (seed, its number in `index`, or its place in the list): no result depends on the other
    canvases, nor on `batch_size`. `steps` explains every pass: what was filled, and why the others waited.
    In place of canvases, `prompt` is a text, or a list of them, to be continued by `new_tokens`; with `chat`, by the model's chat template.
    A sequence ends at the symbol `stop`, once all left of it is known: what is behind is dropped.
    """
    model = checked_model(model)
    if (canvas is None) == (prompt is None):
        raise PairmiError("decode: expected a canvas or a prompt, " + ("got both" if prompt is not None else "got neither"))
    if prompt is None:
        canvases, single = many(model, canvas)
    else:
        single = not isinstance(prompt, list | tuple)
        canvases = [continuation(model, one, new_tokens, chat) for one in ([prompt] if single else prompt)]
    if index is not None and len(index) != len(canvases):
        raise PairmiError(f"decode: index must number every canvas, got {len(index)} numbers for {len(canvases)}")
    sampling = Sampling(seed, temperature, greedy, verify, accept, None if stop is None else symbol_id(model.vocab, stop, "stop"))
    explain = (lambda step, place: in_words(model, step, place)) if steps else None
    results = decoding.decode(
        model, canvases, resolve(default_rule(model) if rule is None else rule, model), sampling, index, batch_size, explain
    )
    return results[0] if single else results


def default_rule(model: Backbone) -> str:
    """The rule that decodes where none is named: what the model was tuned to, else the paper's."""
    return (isinstance(model, Model) and model.rule) or "mi-guided"


def resolve(spec: Any, model: Backbone) -> Selector:
    """A rule, from its specification if it is one."""
    if isinstance(spec, str):
        return parse_rule(spec, model if isinstance(model, Model) else Model(model))
    if not isinstance(spec, Selector):
        raise PairmiError(f"rule: expected a specification such as 'mi-guided:budget=0.1' or a selector, got {type(spec).__name__}")
    return spec
