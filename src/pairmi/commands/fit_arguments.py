"""The arguments of `pairmi fit`."""

from argparse import ArgumentParser
from collections.abc import Callable

from pairmi.commands.arguments import add_backbone, add_engine, amount, folder, natural, rate, seed


def add_fit(command: Callable[[str, str], ArgumentParser]) -> None:
    """`pairmi fit`."""
    parser = command("fit", "a head, its calibration, a tuned rule and a report for a model, in the time that there is")
    add_backbone(parser)
    parser.add_argument("--data", help="sequences: FASTA, or one a line, complete or with unknown positions (also .gz); Sudoku needs none")
    parser.add_argument("--minutes", type=rate, default=60.0, help="how long it may take in all")
    parser.add_argument("--out", type=folder, required=True, help="folder for all that is made; the same command goes on in it")
    parser.add_argument("--max-loss", type=amount, default=0.01, metavar="NATS", help="the highest price of the tuned rule")
    parser.add_argument("--per", default="position", choices=("sequence", "position"), help="the unit of --max-loss")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), help="of the matrix products; bfloat16 is faster where supported")
    parser.add_argument("--seed", type=seed, default=0, help="of all random draws")
    parser.add_argument("--threads", type=natural, default=0, help="of the CPU; 0 = torch's choice")
    add_engine(parser)
