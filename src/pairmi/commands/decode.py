"""`pairmi decode`."""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice

import torch

from pairmi import api
from pairmi.commands.canvases import canvas_lines
from pairmi.spec import Model, load
from pairmi.types import PairmiError


def _checked_canvases(model: Model, options: argparse.Namespace) -> Iterator[tuple[int, str, torch.Tensor]]:
    for number, (name, text) in enumerate(canvas_lines(options.canvas)):
        try:
            tokens = api.tokenise(model, text, name)
            found = model.search(tokens) if model.search is not None else None
            if found is not None and not found[0] and not options.anyway:
                raise PairmiError(f"{name}: {found[1]}; --anyway fills it all the same")
            if found is not None:
                print(f"pairmi decode: {name}: {found[1]}", file=sys.stderr)
            yield number, text, tokens
        except PairmiError as error:
            if not options.skip_invalid:
                raise
            print(f"pairmi decode: skipped {error}", file=sys.stderr)


def run(options: argparse.Namespace) -> None:
    """`pairmi decode`: batch by batch, in input order; a canvas draws from the stream of its place in the input."""
    if options.batch < 1:
        raise PairmiError(f"--batch {options.batch}: must be at least 1")
    model = load(options.backbone, attention="mi=attention" in options.rule, head=options.head)
    selector = api.resolve(options.rule, model)
    canvases = _checked_canvases(model, options)
    header = {"backbone": model.name, "rule": options.rule, "seed": options.seed, "temperature": options.temperature}
    opening = separator = json.dumps(header)[:-1] + ', "results": ['  # printed with the first result: bad input prints nothing
    while batch := list(islice(canvases, options.batch)):
        numbers, texts, tokens = (list(column) for column in zip(*batch, strict=True))
        outs = api.decode(
            model,
            tokens,
            selector,
            verify=options.verify,
            seed=options.seed,
            temperature=options.temperature,
            greedy=options.greedy,
            accept=options.accept,
            batch_size=options.batch,
            steps=options.trace,
            index=numbers,
        )
        for text, out in zip(texts, outs, strict=True):
            if options.json:
                steps = {"steps": [asdict(step) for step in out.steps]} if options.trace else {}
                print(
                    separator,
                    json.dumps({"canvas": text, "text": out.text, "passes": out.passes, "rows": out.rows} | steps),
                    sep="",
                    end="",
                )
                separator = ",\n"
            else:
                _print_filled(model, out)
        sys.stdout.flush()
    if options.json:
        print((opening if separator == opening else "") + "]}")


def _print_filled(model: Model, out: api.Filled) -> None:
    print(f"{out.text}\t{out.passes} passes\t{out.rows} rows")
    for number, step in enumerate(out.steps, 1):
        print(f"  pass {number}: " + ", ".join(f"{model.place(i)}={symbol}" for i, symbol in step.filled.items()))
        for i, reason in step.waiting.items():
            print(f"    {model.place(i)} waits: {reason}")
