"""The arguments of `pairmi map`."""

from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

from pairmi.commands.arguments import CANVAS, add_backbone, add_engine, amount, folder, natural, positive, seed, whole, writable


def add_map(command: Callable[[str, str], ArgumentParser]) -> None:
    """`pairmi map`."""
    parser = command("map", "what depends on what in complete sequences; with --out, of thousands: the same command goes on after a kill")
    add_backbone(parser)
    parser.add_argument(
        "--sequence", dest="canvas", required=True, help=CANVAS.replace("canvas", "sequence").replace(" ('.' or '_' = unknown)", "")
    )
    parser.add_argument("--structure", type=Path, help="a PDB file, for the backbone proteinmpnn")
    parser.add_argument("--by", default="mi", choices=("mi", "jacobian", "substitution", "masking"), help="what is measured")
    parser.add_argument("--apc", action="store_true", help="take away what a position shares with all (average product correction)")
    parser.add_argument("--symmetrise", default="mean", choices=("mean", "max", "none"), help="the two directions of a pair")
    parser.add_argument("--symbols", type=whole(2), help="jacobian, substitution: try so many a position; default: all up to 64, else 16")
    parser.add_argument("--drawn", action="store_true", help="these are drawn from the model's beliefs; else the likeliest")
    parser.add_argument(
        "--blocks", type=whole(2), default=4, help="mi: two of so many random blocks are unknown at a time; substitution, masking: one"
    )
    parser.add_argument("--deals", type=positive, default=2, help="mi: how often the blocks are dealt")
    parser.add_argument("--floor", type=amount, default=0.01, help="mi: what pruning may change, in nats")
    parser.add_argument("--seed", type=seed, default=0, help="of the blocks and the drawn symbols")
    parser.add_argument("--batch", type=positive, default=256, help="sequences evaluated at once; no result depends on it")
    parser.add_argument("--precision", choices=("float32", "float16", "bfloat16"), help="of the backbone's matrix products")
    parser.add_argument("--top", type=natural, default=10, help="how many of the strongest pairs to print")
    parser.add_argument(
        "--save", type=writable, nargs="+", default=[], metavar="FILE", help="of one sequence: .npz .parquet .csv .html .svg .png"
    )
    parser.add_argument("--out", type=folder, help="folder for a parquet file each, instead of printing")
    parser.add_argument("--skip-invalid", action="store_true", help="report bad sequences on standard error and go on")
    parser.add_argument("--json", action="store_true", help="one JSON document a line on standard output")
    add_engine(parser)
