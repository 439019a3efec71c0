"""`pairmi mi`."""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import torch
from tqdm import tqdm

from pairmi import api
from pairmi.blocks import Window, checked_block, leftmost
from pairmi.commands.canvases import Canvas, checked_canvases, reads_fasta, text_options
from pairmi.commands.document import document
from pairmi.loading import load
from pairmi.mi.sampled import SampledProbe
from pairmi.model import Model, device_of
from pairmi.spec import probing
from pairmi.types import PairmiError


def run(options: argparse.Namespace) -> None:
    """`pairmi mi`: canvas by canvas, in input order."""
    options.mi = _kind(options)
    model = load(options.backbone, head=options.head, **text_options(options))
    probe = probing(options.form, options.floor, options.draws, options.error, options.batch)  # refused before anything is computed
    kind = {"draws": probe.draws, "error": options.error} if isinstance(probe, SampledProbe) else {"floor": probe.floor}
    settings = {"backbone": model.name, "mi": options.mi, "form": probe.form} | kind
    canvases = tqdm(checked_canvases(model, options), desc="mi", unit="canvas", file=sys.stderr, disable=not reads_fasta(options.canvas))
    found = _drawn(model, ((canvas, _measured(model, canvas, options)) for canvas in canvases), options)
    if options.json:
        pieces = document(settings, (_record(model, canvas, mi, options) for canvas, mi in found))
    else:
        pieces = (_described(model, canvas, mi, options) for canvas, mi in found)
    for piece in pieces:
        print(piece, end="", flush=True)


def _kind(options: argparse.Namespace) -> str:
    """`--mi`, which a head that is named implies; refuses what would be ignored."""
    if options.mi == "probe" and options.head is not None:
        raise PairmiError(f"--mi probe reads no head, got --head {options.head}; leave out one of them")
    kind: str = options.mi or ("probe" if options.head is None else "head")
    given = [f"--{name}" for name in ("form", "floor", "draws", "error") if getattr(options, name) is not None]
    if kind == "head" and given:
        raise PairmiError(f"a head estimates from one pass; {', '.join(given)} are for probing: leave them out, or choose --mi probe")
    return kind


def _drawn(model: Model, found: Iterator[tuple[Canvas, api.MI]], options: argparse.Namespace) -> Iterator[tuple[Canvas, api.MI]]:
    """The same, the first of them drawn where that is asked for."""
    for number, (canvas, mi) in enumerate(found):
        if options.figure and not number:
            mi.plot(f"{model.name}: mutual information\n{canvas.record or canvas.text[:81]}").savefig(options.figure, dpi=150)
        yield canvas, mi


def _measured(model: Model, canvas: Canvas, options: argparse.Namespace) -> api.MI:
    if options.mi == "head":
        tokens, block = canvas.tokens[None].to(device_of(model)), options.block
        window = None if block is None else Window(model, tokens, leftmost(tokens, model.vocab.size, checked_block(block, tokens)))
        return api.estimated(model, tokens, window=window)[0]
    asked = {name: getattr(options, name) for name in ("form", "floor", "draws", "error", "seed", "block")}
    found: list[api.MI] = api.mutual_information(model, [canvas.tokens], batch_size=options.batch, **asked)
    return found[0]


def _record(model: Model, canvas: Canvas, found: api.MI, options: argparse.Namespace) -> dict[str, Any]:
    named = {} if canvas.record is None else {"record": canvas.record}
    pairs = [{"i": i, "j": j, "nats": nats} for i, j, nats in found.strongest(options.top)]
    values = {name: value.tolist() if isinstance(value, torch.Tensor) else value for name, value in asdict(found).items()}
    del values["names"], values["unknown"]  # the canvas says it
    values |= {"bound": None} if not _certified(options) else {}
    cut = {} if model.vocab.tokenizer is None else {"tokens": model.vocab.letters(canvas.tokens)}
    return named | {"canvas": canvas.text} | cut | {"strongest": pairs} | values


def _described(model: Model, canvas: Canvas, found: api.MI, options: argparse.Namespace) -> str:
    within = f"every entry within {float(found.bound.max()):.2g} nats of the full probe" if _certified(options) else "an estimate"
    unit = "" if options.form == "tv" else " nats"
    if found.error is not None:
        within = f"unbiased, with standard errors of up to {float(found.error.max()):.2g}{unit}"
    lines = [canvas.text if canvas.record is None else f">{canvas.record}\n{canvas.text}"]
    lines.append(f"  {found.rows} rows evaluated; {within}" + (f"; {found.note}" if found.note else ""))
    at = (found.positions or range(len(found.matrix))).index
    for i, j, nats in found.strongest(options.top):
        error = "" if found.error is None else f" +- {float(found.error[at(i), at(j)]):.3f}"
        lines.append(f"  {model.task.position(i):>6} - {model.task.position(j):<6} {nats:.3f}{error}{unit}")
    return "\n".join(lines) + "\n"


def _certified(options: argparse.Namespace) -> bool:
    return options.mi != "head" and options.draws is None
