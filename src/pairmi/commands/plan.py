"""`pairmi plan`: what labelling would cost, measured on a few states before anybody starts."""

import argparse
import math
import os
import sys
import time
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from tqdm import tqdm

from pairmi import api
from pairmi.bench.head_cost import flops
from pairmi.canvases import tokenise
from pairmi.commands.canvases import canvas_lines
from pairmi.commands.document import dumped
from pairmi.counting import Counting
from pairmi.decoding import batches
from pairmi.loading import load
from pairmi.model import Model
from pairmi.spec import probing
from pairmi.training.labels import Effort, Probing
from pairmi.training.labels import measured as probed
from pairmi.training.states import corrupt, states_for
from pairmi.types import PairmiError

TOGETHER = 4  # states probed at once, between two ticks of the progress bar
DRAFT = "top-k:k=8"  # how sequences are sampled where no canvases are given

DESCRIBED = """{states} states for {backbone}, estimated from {measured} states of {positions:.3g} positions, \
{unknown:.3g} unknown, on one core here
rows        {rows:.3g} ({rows_per_state:.4g} a state {error}; of every symbol {full_rows_per_state:.4g})
FLOPs       {flops:.3g} ({flops_per_row:.3g} a row)
core-hours  {core_hours:.3g} ({milliseconds:.3g} ms a row)
hours       {hours:.3g} with {workers} workers of one core
labels      {megabytes:.3g} MB before compression"""


def run(options: argparse.Namespace) -> None:
    """`pairmi plan`."""
    model, probe = load(options.backbone, device="cpu"), probing(options.form, options.floor, options.draws, batch_rows=options.batch)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # a core is what is counted in
    try:
        sample = sampled(model, options)
        plan = measured(model, sample, probe, options.states, options.workers or os.cpu_count() or 1, Effort(options.positions))
    finally:
        torch.set_num_threads(threads)
    faster = None if options.tflops is None else plan["flops"] / (options.tflops * 1e12) / plan["workers"] / 3600
    if options.json:
        print(dumped(plan | {"tflops": options.tflops, "hours_at_tflops": faster}))
        return
    print(described(plan))
    if faster is not None:
        print(f"hours       {faster:.3g} if each worker sustains {options.tflops:g} TFLOP/s")


def sampled(model: Model, options: argparse.Namespace) -> list[Int[Tensor, " L"]]:
    """States like those to be labelled: the given canvases; else Sudoku's own; else samples of the model under uniform masks."""
    if options.canvas is not None:
        lines = list(canvas_lines(options.canvas))
        stride = max(1, len(lines) // options.sample)
        return [tokenise(model, text, name) for name, text, _ in lines[::stride][: options.sample]]
    if model.task.name == "sudoku":
        return [state.tokens for state in states_for(model, None).draw(model, 0, 0, options.sample)]
    length = model.length or options.length
    if length is None:
        raise PairmiError(f"{options.backbone} takes sequences of any length; say which with --length, or give canvases with --canvas")
    empty = torch.full((options.sample, length), model.vocab.size)
    complete = torch.stack([out.tokens for out in api.decode(model, list(empty), DRAFT, steps=False)])
    rng = torch.Generator().manual_seed(0)
    levels = (torch.arange(options.sample) + torch.rand(options.sample, generator=rng)) / options.sample  # a mask of every size
    return list(corrupt(complete, levels, model.vocab.size, rng))


def measured(
    model: Model, sample: list[Int[Tensor, " L"]], probe: Probing, states: int, workers: int, effort: Effort | None = None
) -> dict[str, Any]:
    """Probe the sample, a few canvases of one length together, as labelling does."""
    rows: list[Tensor] = []
    spent, evaluated, operations = 0.0, 0, 0
    groups = [[sample[place] for place in places] for places in batches(sample, TOGETHER)]
    for group in tqdm(groups, desc="plan", unit="group", file=sys.stderr, leave=False):
        tokens = torch.stack(group)
        model(tokens[:1])  # warm
        operations += flops(lambda: model(tokens[:1])) * len(tokens)  # noqa: B023
        meter = Counting(model, probe.batch_rows)
        start = time.process_time()  # not the time on the wall: others may be using this core
        prediction = meter(tokens)
        rows.append(probed(prediction, meter, probe, effort or Effort())["rows"])
        spent, evaluated = spent + time.process_time() - start, evaluated + meter.rows
    each: Float[Tensor, " S"] = torch.cat(rows).double()
    lengths = torch.tensor([float(len(canvas)) for canvas in sample])
    unknown = torch.tensor([float((canvas == model.vocab.size).sum()) for canvas in sample])
    total, per_row = states * float(each.mean()), spent / evaluated
    return {
        "backbone": model.name,
        "states": states,
        "workers": workers,
        "measured": len(sample),  # states probed for this
        "positions": float(lengths.mean()),  # of a state
        "unknown": float(unknown.mean()),  # of them unknown
        "rows_per_state": float(each.mean()),
        "rows_error": float(each.std() / math.sqrt(len(each))) if len(each) > 1 else None,  # of the mean above: one standard error
        "full_rows_per_state": float((1 + unknown * model.vocab.size).mean()),  # without pruning
        "flops_per_row": operations / len(sample),  # in matrix products and attention
        "seconds_per_row": per_row,  # of one core, here
        "megabytes": states * float((4 * lengths * (lengths - 1) / 2 + 5 * lengths).mean()) / 1e6,  # of labels, before compression
        "rows": total,  # sequences to evaluate
        "flops": total * operations / len(sample),
        "core_hours": total * per_row / 3600,
        "hours": total * per_row / 3600 / workers,  # if the workers share the work evenly, one core each
    }


def described(plan: dict[str, Any]) -> str:
    """For people."""
    error = "from one state" if plan["rows_error"] is None else f"+- {100 * plan['rows_error'] / plan['rows_per_state']:.0f} %"
    return DESCRIBED.format(error=error, milliseconds=1e3 * plan["seconds_per_row"], **plan)
