"""The command line: parsing of arguments, and nothing that takes long to import before a command needs it."""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

CANVAS = "a canvas ('.' or '_' = unknown), a file with one canvas a line or in FASTA (also .gz), or - for standard input"
BENCHMARKS = ("exact", "sudoku-solve", "sudoku-generate", "head-vs-exact", "head", "probe", "speed", "protein", "contacts")
Adding = Callable[[str, str], argparse.ArgumentParser]  # name, one line of help


def _engine(parser: argparse.ArgumentParser, what: str = "where it is done; no result depends on it") -> None:
    where = parser.add_argument_group(what)
    where.add_argument("--engine", default="local", choices=("local", "ray"), help="this process, or actors on Ray (extra 'ray')")
    where.add_argument("--workers", type=int, help="ray: how many, of one CPU core each; default: as many as this machine has")
    where.add_argument("--gpus-per-worker", type=float, default=0.0, help="ray: each worker computes on a GPU; 0.5 = two share one")


def _mi(command: Adding) -> None:
    parser = command("mi", "pairwise mutual information between the unknown positions of canvases")
    parser.add_argument("--backbone", default="sudoku", help="an embedded model, an exact world (see 'pairmi rules'), or a weights file")
    parser.add_argument("--canvas", required=True, help=CANVAS)
    parser.add_argument("--mi", default="probe", choices=("probe", "head"), help="exact, by probing, or estimated by a head from one pass")
    parser.add_argument("--head", help="a head for this backbone; an embedded model has its own")
    parser.add_argument("--form", default="joint", choices=("joint", "kl", "entropy"), help="the definition of mutual information")
    parser.add_argument("--floor", type=float, default=0.01, help="what pruning may change, in nats; 0 = full probe")
    parser.add_argument("--batch", type=int, default=256, help="sequences evaluated at once")
    parser.add_argument("--top", type=int, default=10, help="how many of the strongest pairs to print")
    parser.add_argument("--skip-invalid", action="store_true", help="report bad canvases on standard error and go on")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--figure", type=Path, help="draw the matrix of the first canvas into this file")


def _decode(command: Adding) -> None:
    parser = command("decode", "fill the unknown positions of canvases")
    parser.add_argument("--backbone", default="sudoku", help="as for mi")
    parser.add_argument("--canvas", required=True, help=CANVAS)
    parser.add_argument("--head", help="a head for this backbone; an embedded model has its own")
    parser.add_argument("--rule", default="mi-guided", help="a rule with its parameters, such as mi-bound:budget=0.3; see 'pairmi rules'")
    parser.add_argument(
        "--verify", action="store_true", help="take the rule's choice as a draft; commit what one-by-one decoding would draw"
    )
    parser.add_argument("--seed", type=int, default=0, help="of all random draws")
    parser.add_argument("--temperature", type=float, default=1.0, help="of the draws")
    parser.add_argument("--greedy", action="store_true", help="take the likeliest symbols")
    parser.add_argument("--accept", type=float, default=0.999, help="with --greedy --verify: how sure the conditional must be of a draft")
    parser.add_argument("--batch", type=int, default=256, help="canvases decoded at once; no result depends on it")
    parser.add_argument("--anyway", action="store_true", help="fill canvases that are known to have no completion")
    parser.add_argument("--skip-invalid", action="store_true", help="report bad canvases on standard error and go on")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--trace", action="store_true", help="what was filled in each pass, and why the others waited")
    _engine(parser)


def _rules(command: Adding) -> None:
    command("rules", "the catalogue of decoding rules").add_argument("--json", action="store_true", help="as JSON")


def _data(command: Adding) -> None:
    parser = command("data", "make puzzles with a proved unique solution, one a line")
    parser.add_argument("task", choices=("sudoku",))
    parser.add_argument("--count", type=int, default=10, help="how many")
    parser.add_argument("--givens", default="27", help="given cells: a number, or a range such as 25-29")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same puzzles")
    parser.add_argument("--csv", action="store_true", help="puzzle,solution,givens,difficulty with a header")


def _train(command: Adding) -> None:
    parser = command("train", "train a model; the same command goes on where a killed run stopped")
    parser.add_argument("what", choices=("denoiser", "head"))
    parser.add_argument("--task", default="sudoku", choices=("sudoku", "protein"), help="what to learn")
    parser.add_argument("--data", type=Path, help="protein: FASTA file of the training sequences; 'cluster=' in a header names a family")
    parser.add_argument("--validation", type=Path, help="protein: FASTA file of other families; default: a tenth of those in --data")
    parser.add_argument("--run", type=Path, required=True, help="folder for checkpoints, log and learning curve")
    parser.add_argument("--out", type=Path, help="write the finished weights here")
    parser.add_argument("--steps", type=int, default=6000, help="optimiser steps")
    parser.add_argument("--evaluate-every", type=int, default=250, metavar="STEPS", help="measure on held-out data so often")
    parser.add_argument("--decay", type=float, default=0.5, help="the last part of all steps, over which the learning rate falls to 0")
    parser.add_argument("--peak", type=float, default=1.0, help="denoiser: the highest learning rate, as a share of the usual one")
    parser.add_argument("--batch", type=int, default=96, help="sequences a step")
    parser.add_argument("--micro", type=int, default=32, help="denoiser: sequences at a time: what fits the cache; changes only rounding")
    parser.add_argument(
        "--precision",
        default="float32",
        choices=("float32", "bfloat16"),
        help="of the matrix products (head: the backbone's); bfloat16 is twice as fast where the machine has it (avx512_bf16, amx, GPUs)",
    )
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument(
        "--start",
        metavar="MODEL",
        help="denoiser: go on from these weights, with more blocks if --depth says so; head: from this file's; default: from scratch",
    )
    parser.add_argument(
        "--followed",
        type=float,
        default=2 / 3,
        help="denoiser: share of canvases in the model's own order; 0 = random masks only",
    )
    parser.add_argument("--grids", type=int, default=100_000, help="base grids, before augmentation")
    parser.add_argument("--seed", type=int, default=0, help="of initialisation, data and masks")
    parser.add_argument("--threads", type=int, default=0, help="of the CPU; 0 = torch's choice")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="cuda: a GPU for each process; default: cuda where there is one")
    head = parser.add_argument_group("head only")
    head.add_argument("--backbone", default="sudoku", help="whose mutual information to learn")
    head.add_argument("--labels", type=Path, help="folder that 'pairmi labels' filled")
    head.add_argument("--limit", type=int, help="use about so many labelled states only")
    head.add_argument("--kind", default="low-rank", choices=("low-rank", "pair-mlp"), help="ours, or the paper's")
    head.add_argument("--layers", type=int, nargs="+", metavar="N", help="the blocks whose output it reads; default: the last")
    head.add_argument("--loss", default="mse", choices=("mse", "balanced", "root"), help="mse is the paper's")
    head.add_argument("--augment", type=int, default=0, help="copies of every state, each moved by a random symmetry of Sudoku")
    head.add_argument("--rate", type=float, default=6e-3, help="the highest learning rate; Muon, for the matrices, takes five times that")
    head.add_argument("--inner", type=int, default=96, help="low-rank: width of the network at each position")
    head.add_argument("--forms", type=int, default=16, help="low-rank: bilinear forms")
    head.add_argument("--rank", type=int, default=16, help="low-rank: the rank of each")
    head.add_argument("--mixer", type=int, default=16, help="low-rank: width of the network at each pair")
    head.add_argument("--hops", type=int, default=0, help="low-rank: how often paths through third positions correct the estimate")
    head.add_argument("--edges", type=int, default=4, help="low-rank: kinds of edges that these paths have")
    head.add_argument("--reach", type=int, default=0, help="low-rank: with more open positions than this no hops are taken (0: always)")


def _labels(command: Adding) -> None:
    parser = command("labels", "label states with their probed mutual information; the same command goes on where a killed one stopped")
    parser.add_argument("--backbone", default="sudoku", help="as for mi")
    parser.add_argument("--data", type=Path, help="proteins: FASTA file of sequences; 'cluster=' in a header names a family")
    parser.add_argument("--out", type=Path, required=True, help="folder for the shards")
    parser.add_argument("--states", type=int, required=True, help="how many; rounded up to whole shards")
    parser.add_argument("--seed", type=int, default=0, help="of the states")
    parser.add_argument("--form", default="joint", choices=("joint", "kl", "entropy"), help="the definition of mutual information")
    parser.add_argument("--floor", type=float, default=0.01, help="what pruning may change, in nats; 0 = full probe")
    parser.add_argument("--positions", type=int, default=0, help="probe only so many random positions of each state: for training; 0 = all")
    parser.add_argument("--only", choices=("train", "validation", "test"), help="label only states of these grids, of all that are drawn")
    parser.add_argument("--shard", type=int, default=256, help="states in a file; of proteins all have one length")
    parser.add_argument("--batch", type=int, default=256, help="sequences evaluated at once")
    parser.add_argument(
        "--precision",
        choices=("float32", "float16", "bfloat16"),
        help="of the backbone's matrix products; default: float32, of a pretrained model on a GPU float16",
    )
    parser.add_argument(
        "--part", default="0/1", metavar="K/N", help="make only every N-th shard, from the K-th: for N processes side by side"
    )
    parser.add_argument("--threads", type=int, default=0, help="of the CPU; 0 = torch's choice")
    _engine(parser)


def _plan(command: Adding) -> None:
    parser = command("plan", "what labelling would cost, measured on a few states here")
    parser.add_argument("--backbone", default="sudoku", help="as for mi")
    parser.add_argument("--states", type=int, required=True, help="how many are to be labelled")
    parser.add_argument("--workers", type=int, help="that share the work, one core each; default: as many as this machine has")
    parser.add_argument("--sample", type=int, default=16, help="states to measure")
    parser.add_argument("--canvas", help="measure on these instead of drawn ones: " + CANVAS)
    parser.add_argument("--length", type=int, help="of drawn sequences, for a backbone that takes any")
    parser.add_argument("--form", default="joint", choices=("joint", "kl", "entropy"), help="the definition of mutual information")
    parser.add_argument("--floor", type=float, default=0.01, help="what pruning may change, in nats; 0 = full probe")
    parser.add_argument("--positions", type=int, default=0, help="as for labels: probe only so many of each state; 0 = all")
    parser.add_argument("--batch", type=int, default=256, help="sequences evaluated at once")
    parser.add_argument("--tflops", type=float, help="also the hours with workers that sustain so many TFLOP/s, such as GPUs")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")


def _bench(command: Adding) -> None:
    parser = command("bench", "measure; see experiments/ for the published tables")
    parser.add_argument(
        "name", choices=("exact", "sudoku-solve", "sudoku-generate", "head-vs-exact", "head", "probe", "speed", "protein", "contacts")
    )
    parser.add_argument("--rules", nargs="+", metavar="SPEC", help="only these; default: the whole catalogue, swept")
    parser.add_argument("--worlds", nargs="+", metavar="WORLD", help="exact: only these worlds")
    parser.add_argument("--verify", action="store_true", help="also with verification")
    parser.add_argument("--limit", type=int, help="boards or sequences; speed: rows in a batch; head, probe: labelled states")
    parser.add_argument("--backbone", default="sudoku", help="as for mi")
    parser.add_argument("--labels", type=Path, help="head, probe: folder that 'pairmi labels' filled")
    parser.add_argument("--head", nargs="+", default=[], metavar="FILE", help="head: the heads to compare")
    parser.add_argument("--json", type=Path, help="write the records into this file")
    parser.add_argument("--figure", type=Path, help="draw the frontiers into this file; head: the calibration; contacts: the map")
    parser.add_argument("--batch", type=int, default=128, help="sequences decoded at once; changes the time only")
    parser.add_argument("--records", type=Path, help="a file of measurements: what it holds is not measured again")
    boards = parser.add_argument_group("sudoku-solve, sudoku-generate, head-vs-exact")
    boards.add_argument("--split", default="test", choices=("validation", "test"), help="tune on validation, report on test")
    boards.add_argument("--boards", choices=("puzzles", "empty", "open"), help="other boards than the benchmark's own; open = 12 givens")
    boards.add_argument("--temperature", type=float, help="draw at this temperature; default: argmax for puzzles, else 1")
    boards.add_argument("--accept", type=float, default=0.999, help="with argmax and --verify: how sure the conditional must be")
    boards.add_argument("--seed", type=int, default=0, help="of the draws")
    _engine(parser, "where sudoku-solve, sudoku-generate and head-vs-exact are done; no result but the times depends on it")
    proteins = parser.add_argument_group("protein, contacts")
    proteins.add_argument("--reference", type=Path, help="protein: FASTA file to compare with; default: one-by-one samples of the model")
    proteins.add_argument("--data", type=Path, help="protein: FASTA file of the training sequences, for novelty")
    proteins.add_argument("--lengths", default="108-125", help="protein, without --reference: of the sequences to generate")
    proteins.add_argument("--clusters", type=int, default=15, help="protein: k of k-means")
    proteins.add_argument("--passes", type=float, default=16.0, help="protein: the best setting of each rule is chosen up to here")
    proteins.add_argument("--scored", type=int, default=50, help="protein: sequences for pseudo-perplexity, novelty and recovery")
    proteins.add_argument("--folder", type=Path, help="contacts: PDB files")
    proteins.add_argument("--chain", metavar="SEQUENCE", help="contacts: an antibody heavy chain, to be mapped by its regions")
    proteins.add_argument("--blocks", type=int, default=4, help="contacts: a context masks 2 / blocks of a sequence")
    proteins.add_argument("--deals", type=int, default=2, help="contacts: how often the blocks are dealt again")


def _explore(command: Adding) -> None:
    parser = command("explore", "see on a local web page what depends on what, and watch the rules decode")
    parser.add_argument(
        "--backbone", nargs="+", metavar="NAME", help="the models that the page offers, as for mi; default: all embedded ones"
    )
    parser.add_argument("--head", help="a head for the first backbone; an embedded model has its own")
    parser.add_argument("--port", type=int, default=8765, help="0 = any free one")
    parser.add_argument("--host", default="127.0.0.1", help="where to listen; anything but this machine itself lets others in")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")


def _pricing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--backbone", default="sudoku", help="as for mi")
    parser.add_argument("--head", help="a head for this backbone; an embedded model has its own")
    parser.add_argument("--canvas", required=True, help=CANVAS)
    parser.add_argument("--sequences", type=int, help="drawn in all, the canvases again and again; default: each once, at least 32 in all")
    parser.add_argument("--calibrate", type=int, default=0, metavar="N", help="first calibrate mi-bound on N sequences of other draws")
    parser.add_argument("--temperature", type=float, default=1.0, help="of the draws")
    parser.add_argument("--seed", type=int, default=0, help="of all random draws")
    parser.add_argument("--batch", type=int, default=256, help="sequences at once; no result depends on it")
    parser.add_argument("--skip-invalid", action="store_true", help="report bad canvases on standard error and go on")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")


def _price(command: Adding) -> None:
    parser = command("price", "what rules lose against one-by-one decoding, in nats a sequence, on any model, without ground truth")
    parser.add_argument("--rules", nargs="+", required=True, metavar="SPEC", help="rules, all on the same sequences")
    parser.add_argument("--figure", type=Path, help="draw the frontier, nats over passes, into this file")
    _pricing(parser)


def _tune(command: Adding) -> None:
    parser = command("tune", "the fastest setting of a rule that loses at most a limit, with a promise")
    limit = parser.add_mutually_exclusive_group(required=True)
    limit.add_argument("--max-loss", type=float, metavar="NATS", help="the highest price")
    limit.add_argument("--max-quality-loss", type=float, metavar="SHARE", help="of right answers against sequential decoding, where known")
    parser.add_argument("--per", default="sequence", choices=("sequence", "position"), help="the unit of --max-loss")
    parser.add_argument("--confidence", type=float, default=0.95, help="the probability that the limit is kept")
    parser.add_argument("--family", metavar="SPEC", help="from safe to fast: eb:budget=0.01..1 or top-k:k=1|2|4; default: mi-bound")
    _pricing(parser)


def build_parser() -> argparse.ArgumentParser:
    """All commands with their options."""
    parser = argparse.ArgumentParser(prog="pairmi", description="Which unknown positions of a masked sequence model depend on each other.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text, formatter_class=argparse.ArgumentDefaultsHelpFormatter)

    for add in (_mi, _decode, _rules, _data, _train, _labels, _plan, _bench, _price, _tune, _explore):
        add(command)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 = done, 1 = done but for what is named on standard error, 2 = bad input, 130 = interrupted."""
    options = build_parser().parse_args(arguments)
    from pairmi.spread.units import Incomplete
    from pairmi.types import PairmiError

    try:
        import_module(f"pairmi.commands.{options.command}").run(options)
    except PairmiError as error:
        print(f"pairmi {options.command}: {error}", file=sys.stderr)
        return 1 if isinstance(error, Incomplete) else 2
    except KeyboardInterrupt:
        print(f"pairmi {options.command}: interrupted; what was finished is kept", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read our output has seen enough
        sys.stderr.close()
    except (OSError, UnicodeDecodeError) as error:  # a file that cannot be read or written
        print(f"pairmi {options.command}: {error}", file=sys.stderr)
        return 2
    return 0
