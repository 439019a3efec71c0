"""`pairmi mi`."""

import argparse
import json
from dataclasses import asdict

import torch

from pairmi import api
from pairmi.bench import report
from pairmi.commands.canvases import canvas_lines
from pairmi.spec import load


def run(options: argparse.Namespace) -> None:
    """`pairmi mi`."""
    model = load(options.backbone, head=options.head)
    results = []
    for number, (name, text) in enumerate(canvas_lines(options.canvas)):
        tokens = api.tokenise(model, text, name)
        if options.mi == "head":
            found = api.estimated(model, tokens[None])[0]
        else:
            found = api.mutual_information(model, [tokens], form=options.form, floor=options.floor, batch_size=options.batch)[0]
        pairs = found.strongest(options.top)
        if number == 0 and options.figure:
            report.draw_map(
                found.matrix.numpy(), [model.place(i) for i in range(len(tokens))], f"{model.name}: {text[:60]}", options.figure
            )
        if options.json:
            record = {name: value.tolist() if isinstance(value, torch.Tensor) else value for name, value in asdict(found).items()}
            record |= {"bound": None} if options.mi == "head" else {}
            results.append({"canvas": text, "strongest": [{"i": i, "j": j, "nats": nats} for i, j, nats in pairs]} | record)
            continue
        within = "an estimate" if options.mi == "head" else f"every entry within {float(found.bound.max()):.2g} nats of the full probe"
        print(f"{text}\n  {found.rows} rows evaluated; {within}")
        for i, j, nats in pairs:
            print(f"  {model.place(i):>6} - {model.place(j):<6} {nats:.3f} nats")
    if options.json:
        print(json.dumps({"backbone": model.name, "mi": options.mi, "form": options.form, "floor": options.floor, "results": results}))
