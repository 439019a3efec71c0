"""`pairmi decode`."""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

import torch

from pairmi import api
from pairmi.commands.canvases import canvas_lines
from pairmi.commands.engine import chosen_engine, loading_device
from pairmi.decoding import Sampling
from pairmi.spec import Model, load
from pairmi.spread.placed import placed
from pairmi.spread.units import Failure, Incomplete, Outcome, Unit, backbone_hash, by_halves, settled, task_name
from pairmi.tempered import Tempered
from pairmi.types import PairmiError


class Canvas(NamedTuple):
    """A canvas with its place in the input and what messages call it."""

    number: int
    name: str
    text: str
    tokens: torch.Tensor


@dataclass(frozen=True)
class Filling:
    """The job of a batch: fill its canvases; each draws from the stream of its place in the input."""

    model: Model
    rule: str
    sampling: Sampling
    steps: bool

    def on(self, device: str) -> "Filling":
        """The same with its network on another device."""
        return replace(self, model=replace(self.model, backbone=placed(self.model.backbone, device)))

    def __call__(self, unit: Unit) -> Outcome:
        """What became of each canvas of the batch, but for those that failed."""
        parts, failures = by_halves(self._filled, unit.items, lambda canvas: canvas.name)
        return Outcome(unit, [filled for part in parts for filled in part] or None, tuple(failures))

    def _filled(self, canvases: Sequence[Canvas]) -> list[tuple[str, api.Filled]]:
        outs = api.decode(
            self.model,
            [canvas.tokens for canvas in canvases],
            self.rule,
            **asdict(self.sampling),
            batch_size=len(canvases),
            steps=self.steps,
            index=[canvas.number for canvas in canvases],
        )
        return [(canvas.text, out) for canvas, out in zip(canvases, outs, strict=True)]


def _checked_canvases(model: Model, options: argparse.Namespace) -> Iterator[Canvas]:
    for number, (name, text) in enumerate(canvas_lines(options.canvas)):
        try:
            tokens = api.tokenise(model, text, name)
            found = model.search(tokens) if model.search is not None else None
            if found is not None and not found[0] and not options.anyway:
                raise PairmiError(f"{name}: {found[1]}; --anyway fills it all the same")
            if found is not None:
                print(f"pairmi decode: {name}: {found[1]}", file=sys.stderr)
            yield Canvas(number, name, text, tokens)
        except PairmiError as error:
            if not options.skip_invalid:
                raise
            print(f"pairmi decode: skipped {error}", file=sys.stderr)


def _batches(job: Filling, canvases: Iterator[Canvas], size: int) -> Iterator[Unit]:
    settings = {"rule": job.rule, "sampling": asdict(job.sampling)}
    task, backbone = task_name("decode", settings), backbone_hash(job.model)
    while batch := tuple(islice(canvases, size)):
        yield Unit(task, job.sampling.seed, batch[0].number, batch[-1].number + 1, backbone, batch)


def run(options: argparse.Namespace) -> None:
    """`pairmi decode`: batch by batch, in input order."""
    if options.batch < 1:
        raise PairmiError(f"--batch {options.batch}: must be at least 1")
    engine = chosen_engine(options)
    model = load(options.backbone, attention="mi=attention" in options.rule, head=options.head, device=loading_device(options))
    api.resolve(options.rule, model), Tempered(model, options.temperature)  # refuse what cannot be before anything starts
    sampling = Sampling(options.seed, options.temperature, options.greedy, options.verify, options.accept)
    job = Filling(model, options.rule, sampling, options.trace)
    outcomes = engine.run(job, _batches(job, _checked_canvases(model, options), options.batch))
    filled = (one for outcome in settled(outcomes, _report) for one in outcome.value or ())
    if options.json:
        header = {"backbone": model.name, "rule": options.rule, "seed": options.seed, "temperature": options.temperature}
        _print_document(header, filled, options.trace)
    else:
        for _, out in filled:
            _print_filled(model, out)


def _report(failure: Failure) -> None:
    print(f"pairmi decode: failed {failure}", file=sys.stderr)


def _print_document(header: dict[str, Any], filled: Iterable[tuple[str, api.Filled]], trace: bool) -> None:
    """One JSON document, begun with the first result: bad input prints nothing. Its end is printed also where some failed."""
    opening = before = json.dumps(header)[:-1] + ', "results": ['
    incomplete = None
    try:
        for text, out in filled:
            steps = {"steps": [asdict(step) for step in out.steps]} if trace else {}
            record = {"canvas": text, "text": out.text, "passes": out.passes, "rows": out.rows} | steps
            print(before, json.dumps(record), sep="", end="", flush=True)
            before = ",\n"
    except Incomplete as error:
        incomplete = error
    print((opening if before == opening else "") + "]}")
    if incomplete is not None:
        raise incomplete


def _print_filled(model: Model, out: api.Filled) -> None:
    print(f"{out.text}\t{out.passes} passes\t{out.rows} rows", flush=True)
    for number, step in enumerate(out.steps, 1):
        print(f"  pass {number}: " + ", ".join(f"{model.place(i)}={symbol}" for i, symbol in step.filled.items()))
        for i, reason in step.waiting.items():
            print(f"    {model.place(i)} waits: {reason}")
