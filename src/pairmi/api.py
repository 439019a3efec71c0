"""What a user calls: canvases in (text or tokens, one or many, of any lengths), mutual information or filled canvases out."""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pairmi import decoding
from pairmi.blocks import Window, checked_block, leftmost
from pairmi.canvases import checked_model, continuation, many, one_or_many, symbol_id
from pairmi.commit import Sampling
from pairmi.counting import Counting
from pairmi.draw import Streams
from pairmi.explain import in_words
from pairmi.info import entropy_of
from pairmi.loading import with_head
from pairmi.mi.probe import Form, Probe
from pairmi.mi.sampled import SampledProbe, interval
from pairmi.model import Model, device_of, position_names
from pairmi.pairs.result import Pairs
from pairmi.pairs.scores import Scores
from pairmi.results import Result
from pairmi.spec import probing
from pairmi.spec import rule as parse_rule
from pairmi.types import Backbone, PairmiError, Prediction, Selector, Tokens

PAIRS = 4_000_000  # entries of pair matrices that are in memory at once


@dataclass(frozen=True)
class MI(Pairs):
    """Pairwise mutual information of one canvas, in nats: probed, drawn, or estimated by a head."""

    matrix: Float[Tensor, "L L"]  # symmetric, >= 0, zero outside unknown x unknown
    bound: Float[Tensor, "L L"]  # entrywise: what pruning can have changed; infinite where nothing is certified: of draws and heads
    entropies: Float[Tensor, " L"]
    rows: int  # sequences evaluated, the base pass included
    unknown: Bool[Tensor, " L"]
    conditional_entropies: Float[Tensor, "L L"] | None = None  # [i, j]: H(X_j | X_i, known); None, as the next two, for draws and heads
    asymmetry: float | None = None  # the mean of |I_ij - I_ji| over unknown pairs: 0 for a consistent model
    inconsistency: float | None = None  # the mean of KL(mixture of conditionals || marginal): 0 for a consistent model
    error: Float[Tensor, "L L"] | None = None  # entrywise standard error of what was drawn; None = nothing was
    note: str | None = None  # why an estimate is to be doubted here: the canvas is unlike what its head was trained on
    names: tuple[str, ...] = ()  # what people call the positions; empty = they count from 1
    positions: tuple[int, ...] | None = None  # of one block: where the rows of the matrix stand in the canvas; None = as they are
    drawn: Float[Tensor, " L"] | None = None  # symbols drawn at each position, beside those that were looked at exactly

    def __repr__(self) -> str:
        uncertain, top = int((self.entropies > 0).sum()), self.strongest(1)
        said = f"strongest {top[0][0]}-{top[0][1]} with {top[0][2]:.3g} nats" if top else "nothing depends on anything"
        return f"MI({len(self.matrix)} positions, {uncertain} uncertain; {said}; {self.rows} rows)"

    def to_numpy(self) -> Float[np.ndarray, "L L"]:
        """The matrix: of one block, where that alone was looked at."""
        return self.matrix.double().numpy().copy()

    @property
    def interval(self) -> tuple[Float[Tensor, "L L"], Float[Tensor, "L L"]] | None:
        """The ends of an interval of about 95 % for each entry of what was drawn (`pairmi.mi.sampled.interval`); None = nothing was."""
        if self.error is None or self.drawn is None:
            return None
        low, high = interval(self.matrix[None], self.error[None], self.drawn[None])
        return low[0], high[0]

    @property
    def scores(self) -> Scores:
        """The numbers with their labels, by positions of the canvas; only unknown positions are shown."""
        at = self.positions or tuple(range(len(self.matrix)))
        size, told = max(at) + 1, dict(zip(at, self.names, strict=False))
        matrix, names = np.zeros((size, size)), tuple(told.get(n, str(n + 1)) for n in range(size))
        matrix[np.ix_(at, at)] = self.to_numpy()
        shown = tuple(at[row] for row in torch.nonzero(self.unknown)[:, 0].tolist())
        return Scores(matrix, ("",) * size, names, shown, "mutual information", "nats")


@runtime_checkable
class Cautious(Protocol):
    """An estimate that knows what it was trained on."""

    def outside(self, canvases: Prediction | Tokens) -> str | None:
        """What about canvases is unlike all that it has seen; None = nothing."""


def as_model(backbone: Backbone) -> Model:
    """A user's own backbone as a model of which nothing else is known; a model as it is."""
    return backbone if isinstance(backbone, Model) else Model(checked_model(backbone))


@one_or_many
def mutual_information(
    model: Any,
    canvas: Any,
    *,
    form: Form | None = None,
    floor: float | None = None,
    draws: int | None = None,
    error: float | None = None,
    seed: int = 0,
    batch_size: int = 256,
    head: str | None = None,
    block: int | None = None,
) -> tuple[list[MI], bool]:
    """Pairwise mutual information between the unknown positions, by probing the model; one canvas or a list of them.

    `floor` (nats, default 0.01) bounds what pruning may change in a directed entry; 0 probes every symbol of every unknown position. At
    a large vocabulary `draws` rows a position give an unbiased estimate of the `kl` (default) or `tv` form with its standard error; with
    `error` (nats) more are drawn until no entry's is above that. `form` is else `joint`. With `head` (the name of an embedded model, or a
    file) it is estimated from one pass instead. With `block` only the first so many unknown positions of a canvas are looked at, and the
    model computes nothing of the others: the matrix is of these `positions`.
    """
    model = checked_model(model)
    canvases, single = many(model, canvas)
    for_probing = {"form": form, "floor": floor, "draws": draws, "error": error}
    if head is not None and (given := [name for name, value in for_probing.items() if value is not None]):
        raise PairmiError(f"mutual_information: head={head!r} estimates from one pass; {', '.join(given)} are for probing: leave them out")
    guided = None if head is None else with_head(as_model(model), head)
    probe, results = probing(form, floor, draws, error, batch_size), dict[int, MI]()
    size = max(len(one) for one in canvases) if block is None else checked_block(block, canvases)
    most = max(1, min(batch_size, PAIRS // size**2))
    for batch in decoding.batches(canvases, most):
        tokens = torch.stack([canvases[n] for n in batch]).to(device_of(model))
        window = None if block is None else Window(guided or model, tokens, leftmost(tokens, model.vocab.size, block))
        rng = Streams(seed, torch.tensor(batch, device=tokens.device))
        found = _probed(model, tokens, probe, rng, window) if guided is None else estimated(guided, tokens, window=window)
        results |= dict(zip(batch, found, strict=True))
    return [results[n] for n in range(len(canvases))], single


def estimated(model: Model, tokens: Tokens, prediction: Prediction | None = None, window: Window | None = None) -> list[MI]:
    """What the model's head says of each row of a batch, from the prediction that one already has or from a pass."""
    if model.head is None:
        raise PairmiError(f"model {model.name!r} has no head; load(..., head=FILE), or probe it")
    meter, tokens = Counting(window or model), tokens.to(device_of(model))
    prediction = prediction or meter(tokens if window is None else window.tokens)
    head, matrices = model.head, model.head(prediction, meter, Streams(0, torch.arange(len(tokens), device=tokens.device)))
    values: dict[str, Any] = {"matrix": matrices, "entropies": torch.where(prediction.masked, entropy_of(prediction), 0)}
    meter.complain()
    values["note"] = [head.outside(row[None]) if isinstance(head, Cautious) else None for row in tokens.cpu()]
    return _each(model, window, prediction, values | {"rows": [1] * len(tokens)})


def _probed(model: Backbone, tokens: Tokens, probe: Probe | SampledProbe, rng: Streams, window: Window | None) -> list[MI]:
    """What probing says of each row of a batch, exactly or from draws."""
    meter = Counting(window or model, probe.batch_rows)
    prediction = meter(tokens if window is None else window.tokens)
    values: dict[str, Any]
    if isinstance(probe, SampledProbe):
        drawn = probe.measure(prediction, meter, rng)
        values = {"matrix": drawn.matrix, "entropies": drawn.entropies, "rows": drawn.rows + 1, "error": drawn.error}
        values["drawn"] = drawn.drawn
    else:
        found, unknown = probe.measure(prediction, meter), prediction.masked.sum(1)
        values = {"matrix": found.matrix.clamp_min(0), "bound": found.bound, "entropies": found.entropies, "rows": found.rows + 1}
        asymmetry = (found.directed - found.directed.transpose(1, 2)).abs()
        pairs = (unknown * (unknown - 1)).clamp_min(1)
        means = {"asymmetry": asymmetry.sum((1, 2)) / pairs, "inconsistency": found.inconsistency.sum((1, 2)) / pairs}
        values |= means | {"conditional_entropies": found.conditional_entropies}
    meter.complain()
    return _each(model, window, prediction, values)


def _each(model: Backbone, window: Window | None, prediction: Prediction, values: dict[str, Any]) -> list[MI]:
    """One result for each row, with the names of its positions, and where they stand if they are a window's."""
    values = {"bound": torch.full_like(values["matrix"], torch.inf), "unknown": prediction.masked} | values
    for name, value in values.items():
        if isinstance(value, Tensor):
            values[name] = value.cpu() if value.ndim > 1 else value.tolist()
    rows = [{name: value[n] for name, value in values.items()} for n in range(len(prediction.tokens))]
    if window is None:
        return [MI(**row, names=position_names(model, len(row["matrix"]))) for row in rows]
    every, places = position_names(model, window.canvases.shape[1]), [tuple(row) for row in window.places.tolist()]
    return [MI(**row, names=tuple(every[i] for i in at), positions=at) for row, at in zip(rows, places, strict=True)]


@one_or_many
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
) -> tuple[list[Result], bool]:
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
    selector = resolve(default_rule(model) if rule is None else rule, model)
    return decoding.decode(model, canvases, selector, sampling, index, batch_size, explain), single


def default_rule(model: Backbone) -> str:
    """The rule that decodes where none is named: what the model was tuned to, else the paper's."""
    return (isinstance(model, Model) and model.rule) or "mi-guided"


def resolve(spec: Any, model: Backbone) -> Selector:
    """A rule, from its specification if it is one."""
    if isinstance(spec, str):
        return parse_rule(spec, as_model(model))
    if not isinstance(spec, Selector):
        raise PairmiError(f"rule: expected a specification such as 'mi-guided:budget=0.1' or a selector, got {type(spec).__name__}")
    return spec
