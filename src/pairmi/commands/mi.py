"""`pairmi mi`."""

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

import torch
from tqdm import tqdm

from pairmi import api
from pairmi.commands.canvases import Canvas, checked_canvases, reads_fasta
from pairmi.loading import load
from pairmi.model import Model


def run(options: argparse.Namespace) -> None:
    """`pairmi mi`: canvas by canvas, in input order."""
    model = load(options.backbone, head=options.head)
    settings = {"backbone": model.name, "mi": options.mi, "form": options.form, "floor": options.floor}
    opening = separator = json.dumps(settings)[:-1] + ', "results": ['  # printed with the first result: bad input prints nothing
    canvases = checked_canvases(model, options)
    for canvas in tqdm(canvases, desc="mi", unit="canvas", file=sys.stderr, disable=not reads_fasta(options.canvas)):
        found = _measured(model, canvas, options)
        if separator == opening and options.figure:
            found.plot(f"{model.name}: mutual information\n{canvas.record or canvas.text[:81]}").savefig(options.figure, dpi=150)
        if options.json:
            print(separator, json.dumps(_document(canvas, found, options)), sep="", end="", flush=True)
        else:
            _print(model, canvas, found, options)
        separator = ",\n"
    if options.json:
        print((opening if separator == opening else "") + "]}")


def _measured(model: Model, canvas: Canvas, options: argparse.Namespace) -> api.MI:
    if options.mi == "head":
        return api.estimated(model, canvas.tokens[None])[0]
    return api.mutual_information(model, [canvas.tokens], form=options.form, floor=options.floor, batch_size=options.batch)[0]


def _document(canvas: Canvas, found: api.MI, options: argparse.Namespace) -> dict[str, Any]:
    named = {} if canvas.record is None else {"record": canvas.record}
    pairs = [{"i": i, "j": j, "nats": nats} for i, j, nats in found.strongest(options.top)]
    values = {name: value.tolist() if isinstance(value, torch.Tensor) else value for name, value in asdict(found).items()}
    del values["names"], values["unknown"]  # the canvas says it
    values |= {"bound": None} if options.mi == "head" else {}
    return named | {"canvas": canvas.text, "strongest": pairs} | values


def _print(model: Model, canvas: Canvas, found: api.MI, options: argparse.Namespace) -> None:
    within = "an estimate" if options.mi == "head" else f"every entry within {float(found.bound.max()):.2g} nats of the full probe"
    print(canvas.text if canvas.record is None else f">{canvas.record}\n{canvas.text}")
    print(f"  {found.rows} rows evaluated; {within}" + (f"; {found.note}" if found.note else ""))
    for i, j, nats in found.strongest(options.top):
        print(f"  {model.task.position(i):>6} - {model.task.position(j):<6} {nats:.3f} nats")
