"""`pairmi train`: from options to finished weights with their configuration and provenance inside."""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from pairmi.loading import load
from pairmi.mi.head import LowRankHead
from pairmi.mi.heads import Layered
from pairmi.pairs.picture import pyplot
from pairmi.store import read_stores
from pairmi.training.distill import SIZES, Distill, DistillConfig, export_head, make_head, started
from pairmi.training.length_buckets import typical_share
from pairmi.training.loop import Job, export, fit, read_log
from pairmi.training.optimizer import Rates
from pairmi.training.processes import Processes, together
from pairmi.training.structures import load_structures, without
from pairmi.training.table_labels import make_walks
from pairmi.training.tables import TableTraining, make_tables
from pairmi.types import PairmiError


def fit_job(job: Job, options: argparse.Namespace, processes: Processes, export_weights: Callable[[Path, Path], None]) -> None:
    """Train to the end; the leading process draws the learning curve and writes the weights."""
    schedule = {"steps": options.steps, "warmup": 50, "decay": options.decay, "save_every": 100, "evaluate_every": options.evaluate_every}
    file = fit(job, options.run, **schedule, leads=processes.leads)
    if processes.leads:
        draw_curve(options.run / "log.jsonl", options.run / "curve.png")
        if options.out:
            export_weights(file, options.out)


def draw_curve(log: Path, file: Path) -> None:
    """Every logged figure of a run against the step, one panel each."""
    plt = pyplot()
    records = read_log(log)
    names = [name for name in records[-1] if name not in ("step", "seconds", "rate")]
    figure, axes = plt.subplots(1, len(names), figsize=(4 * len(names), 3), squeeze=False, layout="constrained")
    for axis, name in zip(axes.flat, names, strict=True):
        axis.plot([r["step"] for r in records if name in r], [r[name] for r in records if name in r], lw=1.2)
        axis.set(title=name, xlabel="step")
        axis.grid(alpha=0.25)
    figure.savefig(file, dpi=150)
    plt.close(figure)


def train_head(options: argparse.Namespace) -> None:
    """Fit a head to labels, draw the learning curve, and write the head where `--out` says."""
    with together(options.device) as processes:
        fit_job(_head_job(options, processes), options, processes, export_head)


def _head_job(options: argparse.Namespace, processes: Processes) -> Job:
    if options.labels is None:
        raise PairmiError("train head: --labels DIR is missing; make labels with 'pairmi labels'")
    own = load_structures(options.structures) if options.structures else {}
    model = next(iter(own.values())) if own else load(options.backbone, device=processes.device, precision=options.precision)
    found, settings = read_stores(options.labels, options.limit)
    found, held_out = without(found, options.leave_out, own)
    if options.augment and model.task.name != "sudoku":
        raise PairmiError(f"train head: --augment {options.augment} moves states by symmetries of Sudoku, {options.backbone} has none")
    layers = options.layers or ([model.backbone.depth] if isinstance(model.backbone, Layered) else [])
    sizes = {name: getattr(options, name) for name in SIZES}
    head = make_head(options.kind, model, layers, sizes, options.seed)
    start = started(head, Path(options.start), layers) if options.start else ""
    if not start and isinstance(head, LowRankHead) and not head.config.length:  # Sudoku's keeps the start that its rates were chosen with
        head.begin_at(typical_share(found.split("train") if held_out is None else found))
    rates = Rates(muon=5 * options.rate, adam=options.rate)
    config = DistillConfig(options.seed, options.batch, options.loss, options.augment, rates=rates, precision=options.precision)
    return Distill(model, head, layers, found, settings, config, processes, start, own, held_out)


def train_tables(options: argparse.Namespace) -> None:
    """Make the walks that are missing, fit tables to them, draw the learning curve, and write them where `--out` says."""
    model = load(options.backbone, head=options.head, precision=options.precision)
    walks, settings = make_walks(model, options.labels, options.units)
    rates = Rates(muon=5 * options.rate, adam=options.rate, weight_decay=0.1)
    job = make_tables(model, options.layers, walks, settings, TableTraining(options.seed, options.pairs, rates=rates), options.start)
    fit_job(job, options, Processes(), partial(export, kind="tables", dtype=torch.float16))
