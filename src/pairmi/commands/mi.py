"""`pairmi mi`."""

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

import torch
from tqdm import tqdm

from pairmi import api
from pairmi.blocks import Window, checked_block, leftmost
from pairmi.commands.canvases import Canvas, checked_canvases, reads_fasta, text_options
from pairmi.loading import load
from pairmi.mi.sampled import SampledProbe
from pairmi.model import Model, device_of
from pairmi.spec import probing


def run(options: argparse.Namespace) -> None:
    """`pairmi mi`: canvas by canvas, in input order."""
    model = load(options.backbone, head=options.head, **text_options(options))
    probe = probing(options.form, options.floor, options.draws, options.error, options.batch)  # refused before anything is computed
    kind = {"draws": probe.draws, "error": options.error} if isinstance(probe, SampledProbe) else {"floor": probe.floor}
    settings = {"backbone": model.name, "mi": options.mi, "form": probe.form} | kind
    opening = separator = json.dumps(settings)[:-1] + ', "results": ['  # printed with the first result: bad input prints nothing
    canvases = checked_canvases(model, options)
    for canvas in tqdm(canvases, desc="mi", unit="canvas", file=sys.stderr, disable=not reads_fasta(options.canvas)):
        found = _measured(model, canvas, options)
        if separator == opening and options.figure:
            found.plot(f"{model.name}: mutual information\n{canvas.record or canvas.text[:81]}").savefig(options.figure, dpi=150)
        if options.json:
            print(separator, json.dumps(_document(model, canvas, found, options)), sep="", end="", flush=True)
        else:
            _print(model, canvas, found, options)
        separator = ",\n"
    if options.json:
        print((opening if separator == opening else "") + "]}")


def _measured(model: Model, canvas: Canvas, options: argparse.Namespace) -> api.MI:
    if options.mi == "head":
        tokens, block = canvas.tokens[None].to(device_of(model)), options.block
        window = None if block is None else Window(model, tokens, leftmost(tokens, model.vocab.size, checked_block(block, tokens)))
        return api.estimated(model, tokens, window=window)[0]
    asked = {name: getattr(options, name) for name in ("form", "floor", "draws", "error", "seed", "block")}
    found: list[api.MI] = api.mutual_information(model, [canvas.tokens], batch_size=options.batch, **asked)
    return found[0]


def _document(model: Model, canvas: Canvas, found: api.MI, options: argparse.Namespace) -> dict[str, Any]:
    named = {} if canvas.record is None else {"record": canvas.record}
    pairs = [{"i": i, "j": j, "nats": nats} for i, j, nats in found.strongest(options.top)]
    values = {name: value.tolist() if isinstance(value, torch.Tensor) else value for name, value in asdict(found).items()}
    del values["names"], values["unknown"]  # the canvas says it
    values |= {"bound": None} if not _certified(options) else {}
    cut = {} if model.vocab.tokenizer is None else {"tokens": model.vocab.letters(canvas.tokens)}
    return named | {"canvas": canvas.text} | cut | {"strongest": pairs} | values


def _print(model: Model, canvas: Canvas, found: api.MI, options: argparse.Namespace) -> None:
    within = f"every entry within {float(found.bound.max()):.2g} nats of the full probe" if _certified(options) else "an estimate"
    if found.error is not None:
        within = f"unbiased, with standard errors of up to {float(found.error.max()):.2g} {'' if options.form == 'tv' else 'nats'}".rstrip()
    print(canvas.text if canvas.record is None else f">{canvas.record}\n{canvas.text}")
    print(f"  {found.rows} rows evaluated; {within}" + (f"; {found.note}" if found.note else ""))
    for i, j, nats in found.strongest(options.top):
        at = (found.positions or range(len(found.matrix))).index
        error = "" if found.error is None else f" +- {float(found.error[at(i), at(j)]):.3f}"
        print(f"  {model.task.position(i):>6} - {model.task.position(j):<6} {nats:.3f}{error}{'' if options.form == 'tv' else ' nats'}")


def _certified(options: argparse.Namespace) -> bool:
    return options.mi != "head" and options.draws is None
