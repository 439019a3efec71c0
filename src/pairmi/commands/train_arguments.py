"""The options of each training."""

from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

from pairmi.commands.arguments import add_backbone, folder, fraction, natural, positive, rate, seed, writable


def _training(parser: ArgumentParser) -> None:
    parser.add_argument("--run", type=folder, required=True, help="folder for checkpoints, log and learning curve")
    parser.add_argument("--out", type=writable, help="write the finished weights here")
    parser.add_argument("--steps", type=positive, default=6000, help="optimiser steps")
    parser.add_argument("--evaluate-every", type=positive, default=250, metavar="STEPS", help="measure on held-out data so often")
    parser.add_argument("--decay", type=fraction, default=0.5, help="the last part of all steps, over which the learning rate falls to 0")
    parser.add_argument("--batch", type=positive, default=96, help="sequences a step")
    parser.add_argument("--seed", type=seed, default=0, help="of initialisation, data and masks")
    parser.add_argument("--threads", type=natural, default=0, help="of the CPU; 0 = torch's choice")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="cuda: a GPU for each process; default: cuda where there is one")
    parser.add_argument(
        "--precision",
        default="float32",
        choices=("float32", "bfloat16"),
        help="of the matrix products (head: the backbone's); bfloat16 is twice as fast where the machine has it (avx512_bf16, amx, GPUs)",
    )


def add_train(what: Callable[[str, str], ArgumentParser]) -> None:
    """All that can be trained."""
    _train_denoiser(what("denoiser", "train a masked diffusion model"))
    _train_head(what("head", "train a head on labels that 'pairmi labels' made"))
    _train_tables(what("tables", "train tables for draw=coupled on walks inside the sets of rules, which it makes first"))


def _train_denoiser(parser: ArgumentParser) -> None:
    _training(parser)
    parser.add_argument("--task", default="sudoku", choices=("sudoku", "protein"), help="what to learn")
    parser.add_argument("--data", type=Path, help="protein: FASTA file of the training sequences; 'cluster=' in a header names a family")
    parser.add_argument("--validation", type=Path, help="protein: FASTA file of other families; default: a tenth of those in --data")
    parser.add_argument("--peak", type=rate, default=1.0, help="the highest learning rate, as a share of the usual one")
    parser.add_argument("--micro", type=positive, default=32, help="sequences at a time: what fits the cache; changes only rounding")
    parser.add_argument("--width", type=positive, default=128, help="of the network")
    parser.add_argument("--depth", type=positive, default=8, help="of the network, in blocks")
    parser.add_argument("--heads", type=positive, default=4, help="of attention")
    parser.add_argument("--start", metavar="MODEL", help="go on from these weights, with more blocks if --depth says so")
    parser.add_argument(
        "--followed", type=fraction, default=2 / 3, help="share of canvases in the model's own order; 0 = random masks only"
    )
    parser.add_argument("--grids", type=positive, default=100_000, help="base grids, before augmentation")
    parser.add_argument("--minimal", type=fraction, default=0.0, help="Sudoku: share of puzzles followed that are dug until minimal")
    techniques = ("singles", "locked", "subsets", "beyond")
    parser.add_argument("--needing", default="singles", choices=techniques, help="the least that a minimal one needs")
    parser.add_argument("--again", type=fraction, default=0.0, help="probability to begin again where the model was wrong")
    parser.add_argument(
        "--average", type=fraction, default=0.0, help="keep so much of a moving average of the weights in a step, and write it"
    )


def _train_head(parser: ArgumentParser) -> None:
    _training(parser)
    add_backbone(parser)
    parser.add_argument(
        "--labels",
        type=Path,
        nargs="+",
        required=True,
        metavar="DIR",
        help="folders that 'pairmi labels' filled: exact labels, drawn ones, or both; where there are exact ones it is validated on these",
    )
    parser.add_argument("--structures", type=Path, metavar="DIR", help="the PDB files that labels of ProteinMPNN were made for")
    parser.add_argument("--leave-out", nargs="+", default=[], metavar="NAME", help="structures to validate on, and to learn nothing from")
    parser.add_argument("--limit", type=positive, help="use about so many labelled states only")
    parser.add_argument("--kind", default="low-rank", choices=("low-rank", "pair-mlp"), help="ours, or the paper's")
    parser.add_argument("--layers", type=natural, nargs="+", metavar="N", help="the blocks whose output it reads; default: the last")
    parser.add_argument("--start", metavar="HEAD", help="go on from the weights of this file; default: from scratch")
    parser.add_argument("--loss", default="mse", choices=("mse", "balanced", "root"), help="mse is the paper's")
    parser.add_argument("--augment", type=natural, default=0, help="copies of every state, each moved by a random symmetry of Sudoku")
    parser.add_argument("--rate", type=rate, default=6e-3, help="the highest learning rate; Muon, for the matrices, takes five times that")
    parser.add_argument("--inner", type=positive, default=96, help="low-rank: width of the network at each position")
    parser.add_argument("--forms", type=positive, default=16, help="low-rank: bilinear forms")
    parser.add_argument("--rank", type=positive, default=16, help="low-rank: the rank of each")
    parser.add_argument("--mixer", type=positive, default=16, help="low-rank: width of the network at each pair")
    parser.add_argument("--hops", type=natural, default=0, help="low-rank: how often paths through third positions correct the estimate")
    parser.add_argument("--edges", type=positive, default=4, help="low-rank: kinds of edges that these paths have")
    parser.add_argument(
        "--reach", type=natural, default=0, help="low-rank: with more open positions than this no hops are taken (0: always)"
    )


def _train_tables(parser: ArgumentParser) -> None:
    _training(parser)
    add_backbone(parser)
    parser.add_argument("--labels", type=Path, required=True, help="folder for the walks; those that are there are not made again")
    parser.add_argument("--units", type=positive, default=24, help="walks, in units of about 4,000 rows; half a minute each on one core")
    parser.add_argument(
        "--layers", type=natural, nargs="+", metavar="N", help="the blocks whose output they read; default: those of the head"
    )
    parser.add_argument("--start", metavar="TABLES", help="go on from the weights of this file; default: from scratch")
    parser.add_argument("--rate", type=rate, default=3e-3, help="the highest learning rate; Muon, for the matrices, takes five times that")
    parser.add_argument("--pairs", type=positive, default=3000, help="pairs of positions a step")
