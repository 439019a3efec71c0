"""The arguments of `pairmi price` and `pairmi tune`."""

from argparse import ArgumentParser
from collections.abc import Callable

from pairmi.commands.arguments import CANVAS, add_backbone, amount, fraction, natural, picture, positive, rate, seed


def _pricing(parser: ArgumentParser) -> None:
    add_backbone(parser)
    parser.add_argument("--head", help="a head for this backbone; an embedded model has its own")
    parser.add_argument("--canvas", required=True, help=CANVAS)
    parser.add_argument("--sequences", type=positive, help="drawn in all, the canvases in turn; default: each once, at least 32 in all")
    parser.add_argument("--calibrate", type=natural, default=0, metavar="N", help="first calibrate mi-bound on N sequences of other draws")
    parser.add_argument("--temperature", type=rate, default=1.0, help="of the draws")
    parser.add_argument("--seed", type=seed, default=0, help="of all random draws")
    parser.add_argument("--batch", type=positive, default=256, help="sequences at once; no result depends on it")
    parser.add_argument("--skip-invalid", action="store_true", help="report bad canvases on standard error and go on")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")


def add_price(command: Callable[[str, str], ArgumentParser]) -> None:
    """`pairmi price`."""
    parser = command("price", "what rules lose against sequential decoding, in nats a sequence, on any model, without ground truth")
    parser.add_argument("--rules", nargs="+", required=True, metavar="SPEC", help="rules, all on the same sequences")
    parser.add_argument("--figure", type=picture, help="draw the frontier, nats over passes, into this file")
    _pricing(parser)


def add_tune(command: Callable[[str, str], ArgumentParser]) -> None:
    """`pairmi tune`."""
    parser = command("tune", "the fastest setting of a rule that loses at most a limit, with a promise")
    limit = parser.add_mutually_exclusive_group(required=True)
    limit.add_argument("--max-loss", type=amount, metavar="NATS", help="the highest price")
    limit.add_argument("--max-quality-loss", type=fraction, metavar="SHARE", help="of right answers against sequential, where known")
    parser.add_argument("--per", default="sequence", choices=("sequence", "position"), help="the unit of --max-loss")
    parser.add_argument("--confidence", type=fraction, default=0.95, help="the probability that the limit is kept")
    parser.add_argument("--family", metavar="SPEC", help="from safe to fast: eb:budget=0.01..1 or top-k:k=1|2|4; default: mi-bound")
    _pricing(parser)
