"""Train a masked diffusion model of our own from nothing: of Sudoku, or of proteins in the architecture of ESM-C.

    python experiments/denoiser.py --run DIR --out sudoku.safetensors
    python experiments/denoiser.py --task protein --data train.fasta.gz --validation validation.fasta.gz --run DIR --out protein.safetensors
    torchrun --nproc-per-node 2 experiments/denoiser.py -- --run DIR

The embedded models were made so. Killed and started again with the same options, it goes on where it stopped, and ends with the same bits.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import torch

from pairmi.backbones import esmc
from pairmi.backbones.transformer import Transformer, TransformerConfig
from pairmi.commands.arguments import fraction, positive, rate
from pairmi.commands.parser import Parser
from pairmi.loading import load
from pairmi.tasks.sudoku.techniques import Technique
from pairmi.training.loop import export
from pairmi.training.optimizer import Rates
from pairmi.training.processes import Processes, together
from pairmi.training.run import fit_job
from pairmi.types import PairmiError
from studies.denoise import Denoise, DenoiseConfig, Levels
from studies.protein_corpus import read_corpus
from studies.sudoku_corpus import SudokuCorpus


def parser() -> argparse.ArgumentParser:
    made = Parser(prog="denoiser", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_group("training")
    made.add_argument("--task", default="sudoku", choices=("sudoku", "protein"), help="what to learn")
    made.add_argument("--data", type=Path, help="protein: FASTA file of the training sequences; 'cluster=' in a header names a family")
    made.add_argument("--validation", type=Path, help="protein: FASTA file of other families; default: a tenth of those in --data")
    made.add_argument("--peak", type=rate, default=1.0, help="the highest learning rate, as a share of the usual one")
    made.add_argument("--micro", type=positive, default=32, help="sequences at a time: what fits the cache; changes only rounding")
    made.add_argument("--width", type=positive, default=128, help="of the network")
    made.add_argument("--depth", type=positive, default=8, help="of the network, in blocks")
    made.add_argument("--heads", type=positive, default=4, help="of attention")
    made.add_argument("--start", metavar="MODEL", help="go on from these weights, with more blocks if --depth says so")
    made.add_argument("--followed", type=fraction, default=2 / 3, help="share of canvases in the model's own order; 0 = random masks only")
    made.add_argument("--grids", type=positive, default=100_000, help="base grids, before augmentation")
    made.add_argument("--minimal", type=fraction, default=0.0, help="Sudoku: share of puzzles followed that are dug until minimal")
    techniques = ("singles", "locked", "subsets", "beyond")
    made.add_argument("--needing", default="singles", choices=techniques, help="the least that a minimal one needs")
    made.add_argument(
        "--generating", type=fraction, default=SudokuCorpus.generating, help="Sudoku: share of canvases followed that start empty"
    )
    made.add_argument("--again", type=fraction, default=0.0, help="probability to begin again where the model was wrong")
    made.add_argument(
        "--average", type=fraction, default=0.0, help="keep so much of a moving average of the weights in a step, and write it"
    )
    return made


def scaled(rates: Rates, factor: float) -> Rates:
    """The same with both learning rates `factor` times as high."""
    return replace(rates, muon=factor * rates.muon, adam=factor * rates.adam)


def sudoku_job(options: argparse.Namespace, processes: Processes) -> Denoise:
    shape = TransformerConfig(width=options.width, depth=options.depth, heads=options.heads)
    start = load(options.start).backbone if options.start else None
    grows = isinstance(start, Transformer) and replace(start.config, depth=shape.depth) == shape and start.depth <= shape.depth
    if start is not None and not grows:
        raise PairmiError(f"train denoiser: --start {options.start} is no transformer of this shape or of fewer blocks; expected {shape}")
    followed, rates = round(options.followed * options.batch), scaled(Rates(), options.peak)
    further = {"again": options.again, "average": options.average}
    config = DenoiseConfig(options.seed, options.batch, options.micro, followed, rates=rates, precision=options.precision, **further)
    starts = {"generating": options.generating, "minimal": options.minimal, "needing": Technique[options.needing.upper()]}
    corpus = SudokuCorpus(options.grids, options.seed, **starts)
    return Denoise(shape, config, corpus, cast(Transformer | None, start), processes)


def protein_job(options: argparse.Namespace, processes: Processes) -> Denoise:
    """In the architecture of ESM-C, on random masks only, t ~ U[0, 1]."""
    if options.data is None:
        raise PairmiError("train denoiser: --task protein needs --data FILE, a FASTA file")
    if options.start:
        raise PairmiError("train denoiser: --start is for Sudoku; a protein model starts from scratch")
    shape, rates = esmc.Shape(options.width, options.depth, options.heads), scaled(Rates(weight_decay=0.1), options.peak)
    config = DenoiseConfig(
        options.seed, options.batch, options.micro, 0, Levels(share=0.0), rates, options.precision, average=options.average
    )
    return Denoise(shape, config, read_corpus(options.data, options.validation, shape.longest), processes=processes)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    job, kind = (protein_job, "esmc") if options.task == "protein" else (sudoku_job, "transformer")
    try:
        with together(options.device) as processes:
            fit_job(job(options, processes), options, processes, partial(export, kind=kind, dtype=torch.float16))
    except PairmiError as error:
        print(f"denoiser: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
