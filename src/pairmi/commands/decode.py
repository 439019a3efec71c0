"""`pairmi decode`."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from typing import Any

from tqdm import tqdm

from pairmi import api
from pairmi.canvases import symbol_id
from pairmi.commands.canvases import Canvas, checked_canvases, reads_fasta, text_options
from pairmi.commands.document import document, dumped
from pairmi.commands.engine import chosen_engine, loading_device, results_alone
from pairmi.commit import Sampling
from pairmi.loading import load
from pairmi.model import Model
from pairmi.results import Result
from pairmi.spread.units import Failure, Outcome, Unit, backbone_hash, bisect_failures, settled, task_name
from pairmi.types import PairmiError

WINDOW = 4  # batches that are taken together where lengths differ, so that there are enough canvases of each length


@dataclass(frozen=True)
class Filling:
    """The job of a batch: fill its canvases; each draws from the stream of its place in the input."""

    model: Model
    rule: str
    sampling: Sampling
    steps: bool
    batch: int  # canvases of one length that are decoded at once

    def __call__(self, unit: Unit) -> Outcome:
        """What became of each canvas of the batch, but for those that failed."""
        parts, failures = bisect_failures(self._filled, unit.items, lambda canvas: canvas.name)
        return Outcome(unit, [filled for part in parts for filled in part] or None, tuple(failures))

    def _filled(self, canvases: Sequence[Canvas]) -> list[tuple[Canvas, Result]]:
        how = asdict(self.sampling) | {"batch_size": self.batch, "steps": self.steps, "index": [canvas.number for canvas in canvases]}
        return list(zip(canvases, api.decode(self.model, [canvas.tokens for canvas in canvases], self.rule, **how), strict=True))


def _search(model: Model, options: argparse.Namespace, canvas: Canvas) -> None:
    """Refuse a canvas that is known to have no completion."""
    found = model.task.search(canvas.tokens)
    if found is not None and not found[0] and not options.anyway:
        raise PairmiError(f"{canvas.name}: {found[1]}; --anyway fills it all the same")
    if found is not None:
        print(f"pairmi decode: {canvas.name}: {found[1]}", file=sys.stderr)


def _batches(job: Filling, canvases: Iterator[Canvas]) -> Iterator[Unit]:
    size = job.batch if job.model.length is not None else WINDOW * job.batch
    settings = {"rule": job.rule, "sampling": asdict(job.sampling)}
    task, backbone = task_name("decode", settings), backbone_hash(job.model)
    while batch := tuple(islice(canvases, size)):
        yield Unit(task, job.sampling.seed, batch[0].number, batch[-1].number + 1, backbone, batch)


def run(options: argparse.Namespace) -> None:
    """`pairmi decode`: batch by batch, in input order."""
    if (options.canvas is None) == (options.prompt is None):
        raise PairmiError("expected --canvas or --prompt, and not both")
    if options.json and options.jsonl:
        raise PairmiError("expected --json or --jsonl, and not both")
    engine = chosen_engine(options)
    attention = "mi=attention" in (options.rule or "")
    model = load(options.backbone, attention=attention, head=options.head, device=loading_device(options), **text_options(options))
    named, options.rule = options.rule is not None, api.default_rule(model) if options.rule is None else options.rule
    api.resolve(options.rule, model)  # refuse what cannot be before anything starts
    stop = None if options.stop is None else symbol_id(model.vocab, options.stop, "--stop")
    sampling = Sampling(options.seed, options.temperature, options.greedy, options.verify, options.accept, stop)
    job = Filling(model, options.rule, sampling, options.trace, options.batch)
    outcomes = engine.run(job, _batches(job, checked_canvases(model, options, partial(_search, model, options))))
    done = (one for outcome in settled(outcomes, _report) for one in outcome.value or ())
    filled = iter(tqdm(done, desc="decode", unit="canvas", file=sys.stderr, disable=not reads_fasta(options.canvas)))
    header = {"backbone": model.name, "rule": options.rule, "seed": options.seed, "temperature": options.temperature}
    if options.json:
        pieces = document(header, (_record(model, canvas, out, options.trace) for canvas, out in filled))
    elif options.jsonl:
        pieces = (dumped(_record(model, canvas, out, options.trace), ensure_ascii=False) + "\n" for canvas, out in filled)
    else:
        pieces = (_described(model, canvas, out) for canvas, out in filled)
    with results_alone() as file:
        for piece in pieces:
            print(piece, end="", file=file, flush=True)
    if not named and model.rule:
        print(f"pairmi decode: by {options.rule}, to which the model was tuned", file=sys.stderr)


def _report(failure: Failure) -> None:
    print(f"pairmi decode: failed {failure}", file=sys.stderr)


def _record(model: Model, canvas: Canvas, out: Result, trace: bool) -> dict[str, Any]:
    """One result as JSON."""
    named = {} if canvas.record is None else {"record": canvas.record}
    steps = {"steps": [asdict(step) for step in out.steps]} if trace else {}
    costs = {"passes": out.passes, "rows": out.rows, "probe_rows": out.probe_rows}
    cut = {} if model.vocab.tokenizer is None else {"tokens": model.vocab.letters(out.tokens), "offsets": out.offsets}
    verdict = model.task.judge(canvas.tokens, out.tokens)
    return named | {"canvas": canvas.text, "text": out.text} | cut | costs | ({"verdict": verdict} if verdict else {}) | steps


def _described(model: Model, canvas: Canvas, out: Result) -> str:
    """For people; FASTA gives FASTA, unless there is more to tell."""
    if canvas.record is not None and model.vocab.tokenizer is None and not out.steps:
        return f">{canvas.record} passes={out.passes} rows={out.rows} probe_rows={out.probe_rows}\n{out.text}\n"
    probes, verdict = f"\t{out.probe_rows} for probing" if out.probe_rows else "", model.task.judge(canvas.tokens, out.tokens)
    lines = [f"{out.text}\t{out.passes} passes\t{out.rows} rows{probes}" + (f"\t{verdict}" if verdict else "")]
    for number, step in enumerate(out.steps, 1):
        lines.append(f"  pass {number}: " + ", ".join(f"{model.task.position(i)}={symbol}" for i, symbol in step.filled.items()))
        lines += [f"    {model.task.position(i)} waits: {reason}" for i, reason in step.waiting.items()]
    return "\n".join(lines) + "\n"
