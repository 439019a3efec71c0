"""`pairmi train`: from options to finished weights with their configuration and provenance inside."""

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import torch

from pairmi.backbones.transformer import Transformer, TransformerConfig
from pairmi.mi.head import LowRankHead
from pairmi.mi.heads import Layered
from pairmi.training.denoise import Denoise, DenoiseConfig, Levels
from pairmi.training.loop import Job, export, fit, read_log
from pairmi.training.optimizer import Rates
from pairmi.training.processes import Processes, together
from pairmi.types import PairmiError


def train_denoiser(options: argparse.Namespace) -> None:
    """Train, draw the learning curve, and write the weights where `--out` says."""
    with together(options.device) as processes:
        job = (_protein_job if options.task == "protein" else _sudoku_job)(options, processes)
        kind = "esmc" if options.task == "protein" else "transformer"
        _fit(job, options, processes, partial(export, kind=kind, dtype=torch.float16))


def _sudoku_job(options: argparse.Namespace, processes: Processes) -> Denoise:
    from pairmi.loading import load
    from pairmi.tasks.sudoku.techniques import Technique
    from pairmi.training.sudoku import SudokuCorpus

    shape = TransformerConfig(width=options.width, depth=options.depth, heads=options.heads)
    start = load(options.start).backbone if options.start else None
    grows = isinstance(start, Transformer) and replace(start.config, depth=shape.depth) == shape and start.depth <= shape.depth
    if start is not None and not grows:
        raise PairmiError(f"train denoiser: --start {options.start} is no transformer of this shape or of fewer blocks; expected {shape}")
    rates = Rates().scaled(options.peak)
    followed = round(options.followed * options.batch)
    further = {"again": options.again, "average": options.average}
    config = DenoiseConfig(options.seed, options.batch, options.micro, followed, rates=rates, precision=options.precision, **further)
    corpus = SudokuCorpus(options.grids, options.seed, minimal=options.minimal, needing=Technique[options.needing.upper()])
    return Denoise(shape, config, corpus, cast(Transformer | None, start), processes)


def _protein_job(options: argparse.Namespace, processes: Processes) -> Denoise:
    """In the architecture of ESM-C, on random masks only, t ~ U[0, 1]."""
    from pairmi.backbones import esmc
    from pairmi.training.protein import read_corpus

    if options.data is None:
        raise PairmiError("train denoiser: --task protein needs --data FILE, a FASTA file")
    if options.start:
        raise PairmiError("train denoiser: --start is for Sudoku; a protein model starts from scratch")
    shape = esmc.Shape(options.width, options.depth, options.heads)
    rates = Rates(weight_decay=0.1).scaled(options.peak)
    config = DenoiseConfig(
        options.seed, options.batch, options.micro, 0, Levels(share=0.0), rates, options.precision, average=options.average
    )
    return Denoise(shape, config, read_corpus(options.data, options.validation, shape.longest), processes=processes)


def _fit(job: Job, options: argparse.Namespace, processes: Processes, export_weights: Callable[[Path, Path], None]) -> None:
    """Train to the end; the leading process draws the learning curve and writes the weights."""
    schedule = {"steps": options.steps, "warmup": 50, "decay": options.decay, "save_every": 100, "evaluate_every": options.evaluate_every}
    file = fit(job, options.run, **schedule, leads=processes.leads)
    if processes.leads:
        draw_curve(options.run / "log.jsonl", options.run / "curve.png")
        if options.out:
            export_weights(file, options.out)


def draw_curve(log: Path, file: Path) -> None:
    """Every logged figure of a run against the step, one panel each."""
    try:
        import matplotlib
    except ImportError as error:
        raise PairmiError("curve: matplotlib is missing; pip install 'pairmi[plot]'") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

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
    from pairmi.training.distill import export_head

    with together(options.device) as processes:
        _fit(_head_job(options, processes), options, processes, export_head)


def _head_job(options: argparse.Namespace, processes: Processes) -> Job:
    from pairmi.loading import load
    from pairmi.store import read_stores
    from pairmi.training.distill import SIZES, Distill, DistillConfig, make_head, started
    from pairmi.training.length_buckets import typical_share
    from pairmi.training.structures import load_structures, without

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
    start = started(head, Path(options.start)) if options.start else ""
    if not start and isinstance(head, LowRankHead) and not head.config.length:  # Sudoku's keeps the start that its rates were chosen with
        head.begin_at(typical_share(found.split("train") if held_out is None else found))
    rates = Rates(muon=5 * options.rate, adam=options.rate)
    config = DistillConfig(options.seed, options.batch, options.loss, options.augment, rates=rates, precision=options.precision)
    return Distill(model, head, layers, found, settings, config, processes, start, own, held_out)


def train_tables(options: argparse.Namespace) -> None:
    """Make the walks that are missing, fit tables to them, draw the learning curve, and write them where `--out` says."""
    from pairmi.loading import load
    from pairmi.training.table_labels import make_walks
    from pairmi.training.tables import TableTraining, make_tables

    model = load(options.backbone, precision=options.precision)
    walks, settings = make_walks(model, options.labels, options.units)
    rates = Rates(muon=5 * options.rate, adam=options.rate)
    job = make_tables(model, options.layers, walks, settings, TableTraining(options.seed, options.pairs, rates=rates), options.start)
    _fit(job, options, Processes(), partial(export, kind="tables", dtype=torch.float16))
