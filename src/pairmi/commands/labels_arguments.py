"""The arguments of `pairmi labels` and `pairmi plan`."""

from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

from pairmi.commands.arguments import CANVAS, add_backbone, add_engine, add_probe, folder, natural, positive, rate, seed


def add_labels(command: Callable[[str, str], ArgumentParser]) -> None:
    """`pairmi labels`."""
    parser = command("labels", "label states with their probed mutual information; the same command goes on where a killed one stopped")
    add_backbone(parser)
    parser.add_argument("--data", type=Path, help="proteins: FASTA file of sequences; 'cluster=' in a header names a family")
    parser.add_argument("--structures", type=Path, metavar="DIR", help="ProteinMPNN's states for every PDB file of a folder, in turn")
    parser.add_argument("--out", type=folder, required=True, help="folder for the shards")
    parser.add_argument("--states", type=positive, required=True, help="how many; rounded up to whole shards")
    parser.add_argument("--seed", type=seed, default=0, help="of the states")
    add_probe(parser)
    parser.add_argument("--positions", type=natural, default=0, help="probe only so many random positions of each state; 0 = all")
    parser.add_argument("--only", choices=("train", "validation", "test"), help="label only states of these grids, of all that are drawn")
    parser.add_argument("--each", type=positive, help="states from one trajectory: more cost less to reach; default: Sudoku 4, proteins 2")
    parser.add_argument("--shard", type=positive, default=256, help="states in a file; of proteins all have one length")
    parser.add_argument(
        "--precision",
        choices=("float32", "float16", "bfloat16"),
        help="of the backbone's matrix products; default: float32, of a pretrained model on a GPU float16",
    )
    parser.add_argument("--part", default="0/1", metavar="K/N", help="only every N-th shard, from the K-th: for N processes side by side")
    parser.add_argument("--threads", type=natural, default=0, help="of the CPU; 0 = torch's choice")
    add_engine(parser)


def add_plan(command: Callable[[str, str], ArgumentParser]) -> None:
    """`pairmi plan`."""
    parser = command("plan", "what labelling would cost, measured on a few states here")
    add_backbone(parser)
    parser.add_argument("--states", type=positive, required=True, help="how many are to be labelled")
    parser.add_argument("--workers", type=positive, help="that share the work, one core each; default: as many as this machine has")
    parser.add_argument("--sample", type=positive, default=16, help="states to measure")
    parser.add_argument("--canvas", help="measure on these instead of drawn ones: " + CANVAS)
    parser.add_argument("--length", type=positive, help="of drawn sequences, for a backbone that takes any")
    add_probe(parser)
    parser.add_argument("--positions", type=natural, default=0, help="as for labels: probe only so many of each state; 0 = all")
    parser.add_argument("--tflops", type=rate, help="also the hours with workers that sustain so many TFLOP/s, such as GPUs")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
