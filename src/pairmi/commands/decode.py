"""`pairmi decode`."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from itertools import islice
from typing import Any

from tqdm import tqdm

from pairmi import api
from pairmi.commands.canvases import Canvas, checked_canvases, reads_fasta
from pairmi.spec import Model, load
from pairmi.tasks.protein.lengths import same_length
from pairmi.types import PairmiError, Selector

WINDOW = 16  # batches that are read ahead where lengths differ, so that there are enough canvases of each length


def run(options: argparse.Namespace) -> None:
    """`pairmi decode`: window by window, in input order; a canvas draws from the stream of its place in the input."""
    if options.batch < 1:
        raise PairmiError(f"--batch {options.batch}: must be at least 1")
    model = load(options.backbone, attention="mi=attention" in options.rule, head=options.head)
    selector = api.resolve(options.rule, model)
    canvases = checked_canvases(model, options, partial(_search, model, options))
    header = {"backbone": model.name, "rule": options.rule, "seed": options.seed, "temperature": options.temperature}
    opening = separator = json.dumps(header)[:-1] + ', "results": ['  # printed with the first result: bad input prints nothing
    size = options.batch if model.length is not None else WINDOW * options.batch
    with tqdm(desc="decode", unit="canvas", file=sys.stderr, disable=not reads_fasta(options.canvas)) as bar:
        while window := list(islice(canvases, size)):
            for canvas, out in zip(window, _filled(model, selector, window, options, bar), strict=True):
                if options.json:
                    print(separator, json.dumps(_document(canvas, out, options.trace)), sep="", end="")
                    separator = ",\n"
                else:
                    _print_filled(model, canvas, out, options.trace)
            sys.stdout.flush()
    if options.json:
        print((opening if separator == opening else "") + "]}")


def _search(model: Model, options: argparse.Namespace, canvas: Canvas) -> None:
    """Refuse a canvas that is known to have no completion."""
    found = model.search(canvas.tokens) if model.search is not None else None
    if found is not None and not found[0] and not options.anyway:
        raise PairmiError(f"{canvas.name}: {found[1]}; --anyway fills it all the same")
    if found is not None:
        print(f"pairmi decode: {canvas.name}: {found[1]}", file=sys.stderr)


def _filled(model: Model, selector: Selector, window: Sequence[Canvas], options: argparse.Namespace, bar: tqdm) -> list[api.Filled]:
    """The canvases of a window, decoded in batches of one length, in their own order."""
    results: dict[int, api.Filled] = {}
    for places in same_length([len(canvas.tokens) for canvas in window], options.batch):
        outs = api.decode(
            model,
            [window[place].tokens for place in places],
            selector,
            verify=options.verify,
            seed=options.seed,
            temperature=options.temperature,
            greedy=options.greedy,
            accept=options.accept,
            batch_size=options.batch,
            steps=options.trace,
            index=[window[place].number for place in places],
        )
        results |= dict(zip(places, outs, strict=True))
        bar.update(len(places))
    return [results[place] for place in range(len(window))]


def _document(canvas: Canvas, out: api.Filled, trace: bool) -> dict[str, Any]:
    named = {} if canvas.record is None else {"record": canvas.record}
    steps = {"steps": [asdict(step) for step in out.steps]} if trace else {}
    return named | {"canvas": canvas.text, "text": out.text, "passes": out.passes, "rows": out.rows} | steps


def _print_filled(model: Model, canvas: Canvas, out: api.Filled, trace: bool) -> None:
    """FASTA gives FASTA, unless there is more to tell."""
    if canvas.record is not None and not trace:
        print(f">{canvas.record} passes={out.passes} rows={out.rows}\n{out.text}")
        return
    print(f"{out.text}\t{out.passes} passes\t{out.rows} rows")
    for number, step in enumerate(out.steps, 1):
        print(f"  pass {number}: " + ", ".join(f"{model.place(i)}={symbol}" for i, symbol in step.filled.items()))
        for i, reason in step.waiting.items():
            print(f"    {model.place(i)} waits: {reason}")
