"""What the page shows of a canvas: marginals, and what depends on what, estimated, measured, of a complete sequence, or imagined."""

import math
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from pairmi import api, canvases, mapping
from pairmi.counting import Counting
from pairmi.info import LARGE, entropy, entropy_of
from pairmi.mi.probe import Probe
from pairmi.model import Model
from pairmi.pairs.result import PairMap
from pairmi.types import PairmiError, Prediction
from pairmi.web.api import DRAWN, SHOWN, checked, conflict, read
from pairmi.web.work import Event, Watch, watched


def look(model: Model, canvas: str, watch: Watch) -> Event:
    """The marginals of one pass, and all pairwise MI where the model has a head; or why nothing completes the canvas."""
    tokens = read(model, canvas)
    against = conflict(model, tokens)
    if against is not None:
        return {"conflict": against}
    prediction = Counting(watched(model, watch))(canvases.tokenise(model, tokens)[None])
    mi = None if model.head is None else _pairs(api.estimated(model, tokens[None], prediction)[0], "head")
    return {"conflict": None, "mi": mi} | _marginals(model, prediction)


def probe(model: Model, canvas: str, watch: Watch) -> Event:
    """Exact MI, or over a large alphabet from draws, telling how many rows of how many are evaluated."""
    tokens = checked(model, canvas)
    if model.vocab.size >= LARGE:
        watch.total = 1 + DRAWN * int((tokens == model.vocab.size).sum())
        return {"mi": _pairs(api.mutual_information(watched(model, watch), [tokens], draws=DRAWN)[0], "draws")}
    watch.total = 1 + int(Probe().rows(Counting(model)(tokens[None])))
    return {"mi": _pairs(api.mutual_information(watched(model, watch), [tokens])[0], "probe")}


def chart(model: Model, canvas: str, watch: Watch) -> Event:
    """What depends on what in a canvas without unknown positions: what masking one symbol does to the others."""
    tokens = canvases.tokenise(model, read(model, canvas), complete=True)
    found = mapping.map(watched(model, watch), tokens, by="masking")
    return {"mi": _scores(found, found.rows) | {"kind": "map", "note": None}}


def imagine(model: Model, canvas: str, position: int, symbol: str, watch: Watch) -> Event:
    """How all other open positions would move if this one took a symbol: by the model's tables, before any pass, or else by a pass."""
    tokens, ids = checked(model, canvas), {one: n for n, one in enumerate(model.vocab.symbols)}
    if not 0 <= position < len(tokens) or int(tokens[position]) != model.vocab.size or symbol not in ids:
        raise PairmiError(f"imagine: expected an open position and a symbol of {model.name}, got {position} and {symbol[:20]!r}")
    meter = Counting(watched(model, watch))
    if model.tables is None:
        prediction = meter(tokens.index_put((torch.tensor([position]),), torch.tensor([ids[symbol]]))[None])
        return {"by": "pass"} | _marginals(model, prediction)
    prediction = meter(tokens[None])
    others = torch.nonzero(prediction.masked[0] & (torch.arange(len(tokens)) != position))[:, 0]
    if len(others):
        first = torch.zeros_like(others)
        state = model.tables.begin(prediction.rows(first), torch.stack([first + position, others], dim=1), meter)
        moved = model.tables.shifted(model.tables.after(state, first, first + ids[symbol], meter), first + 1)
        log_probs = prediction.log_probs.index_put((torch.zeros_like(others), others), moved.to(prediction.log_probs.dtype))
        prediction = replace(prediction, log_probs=log_probs, entropies=entropy(log_probs))
    after = replace(
        prediction, tokens=prediction.tokens.index_put((torch.tensor([0]), torch.tensor([position])), torch.tensor(ids[symbol]))
    )
    return {"by": "tables"} | _marginals(model, after)


def _marginals(model: Model, prediction: Prediction) -> Event:
    """Of the open positions, the likeliest symbols with their probabilities; the others have null and no entropy."""
    masked, (probs, ids) = prediction.masked[0].tolist(), prediction.log_probs[0].exp().topk(min(SHOWN, model.vocab.size))
    ranked = [
        [[model.vocab.symbols[n], p] for n, p in zip(*row, strict=True)] if unknown else None
        for unknown, *row in zip(masked, ids.tolist(), rounded(probs), strict=True)
    ]
    return {"candidates": ranked, "entropies": rounded(torch.where(prediction.masked, entropy_of(prediction), 0)[0])}


def _scores(found: api.MI | PairMap, rows: int) -> Event:
    strongest = [{"i": i, "j": j, "nats": round(nats, 4)} for i, j, nats in found.strongest(40)]
    return {"matrix": rounded(found.matrix), "strongest": strongest, "rows": rows, "bound": None, "error": None}


def _pairs(found: api.MI, kind: str) -> Event:
    bound, error = float(found.bound.max()), None if found.error is None else float(found.error.max())
    return _scores(found, found.rows) | {
        "kind": kind,
        "bound": round(bound, 4) if math.isfinite(bound) else None,
        "error": round(error, 3) if error is not None and math.isfinite(error) else None,
        "note": found.note,  # what the estimate says of itself, such as a canvas unlike those it was trained on
    }


def rounded(values: Float[Tensor, "*N"]) -> Any:
    """As lists, to four digits behind the point: what a page can show."""
    return (values.double() * 1e4).round().div(1e4).tolist()
