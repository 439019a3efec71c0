"""Train the Sudoku model of the package from nothing: about seven hours on two CPU cores.

    python experiments/sudoku_training.py --run DIR [--precision bfloat16] [--share 1.0] [--grids 100000]
    torchrun --nproc-per-node 2 experiments/sudoku_training.py --run DIR

The stages are those that made the weights in the package, one after the other; they came about over several days and versions of the code, and
the fourth was the first part of a longer schedule, so what comes out is as good but not the same bits. Killed and started again, it goes on.
"""

import argparse
import sys
from pathlib import Path

from denoiser import main as train

HARD = ("--minimal", "0.4", "--needing", "locked", "--again", "0.3", "--generating", "0.04", "--average", "0.99")  # puzzles, and mistakes
STAGES: tuple[tuple[str, ...], ...] = (
    ("--steps", "2800", "--followed", "0"),  # random masks
    ("--steps", "2800"),  # along the model's own trajectories
    ("--steps", "3200", "--peak", "0.4", "--decay", "1"),  # lingering where it is unsure
    ("--steps", "1300", "--peak", "0.6", "--decay", "0.3", "--depth", "16"),  # twice as deep
    ("--steps", "2100", "--peak", "0.45", "--decay", "1", "--depth", "16"),
    ("--steps", "4250", "--peak", "0.6", "--decay", "0.576", "--depth", "16", *HARD),  # longer: the weights in the package
)


def command(number: int, options: argparse.Namespace) -> list[str]:
    """What `denoiser.py` is told for a stage: it begins where the one before ended."""
    name, count, *others = STAGES[number]
    start = ["--start", str(options.run / f"stage{number - 1}.safetensors")] if number else []
    steps = [name, str(max(1, round(options.share * int(count))))]
    where = ["--run", str(options.run / f"stage{number}"), "--out", str(options.run / f"stage{number}.safetensors")]
    return [*steps, *others, *start, *where, "--grids", str(options.grids), "--precision", options.precision]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="folder for checkpoints and weights")
    parser.add_argument("--precision", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--share", type=float, default=1.0, help="of the steps of every stage")
    parser.add_argument("--grids", type=int, default=100_000, help="base grids")
    options = parser.parse_args()
    for number in range(len(STAGES)):
        if code := train(command(number, options)):
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
