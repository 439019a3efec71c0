"""The command line: parsing of arguments, and nothing that takes long to import before a command needs it."""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import pairmi
from pairmi.commands.arguments import (
    CANVAS,
    add_backbone,
    add_engine,
    add_probe,
    fraction,
    natural,
    picture,
    positive,
    rate,
    seed,
    writable,
)

POSITIONS = "Positions are counted from 1 (Sudoku: r1c1 is the upper left cell); in JSON, as in Python, from 0."
EXAMPLES = """examples:
  pairmi mi     --backbone sudoku4 --canvas 1............... --top 3      which unknown positions depend on each other
  pairmi decode --backbone sudoku4 --canvas 1............... --trace      fill them, and say what was filled when and why
  pairmi decode --canvas puzzles.txt --greedy > solved.txt               9x9 Sudoku, with the model in the package
  pairmi rules                                                           the decoding rules, the models, the exact worlds
  pairmi bench exact --worlds sudoku4                                    what each rule loses, without sampling noise
  pairmi explore                                                         all of it on a local web page

'pairmi COMMAND --help' shows the options of a command.
Exit: 0 = done, 1 = done but for what is named on standard error, 2 = bad input, 130 = interrupted."""
Adding = Callable[[str, str], "Parser"]  # name, one line of help


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with its arguments."""

    def error(self, message: str) -> NoReturn:
        """Exit 2."""
        self.exit(2, f"{self.prog}: {' '.join(message.split())}; see '{self.prog} --help'\n")

    def commands(self, dest: str, required: bool = True) -> Adding:
        """What adds commands under this one."""
        under = self.add_subparsers(dest=dest, required=required, metavar=dest.upper())

        def add(name: str, text: str) -> Parser:
            return under.add_parser(name, help=text, description=text, formatter_class=argparse.ArgumentDefaultsHelpFormatter)

        return add


def _mi(command: Adding) -> None:
    from pairmi.commands.text_arguments import add_tokenizer

    parser = command("mi", "pairwise mutual information between the unknown positions of canvases")
    parser.epilog = POSITIONS
    add_backbone(parser)
    add_tokenizer(parser)
    parser.add_argument("--canvas", required=True, help=CANVAS)
    parser.add_argument("--mi", default="probe", choices=("probe", "head"), help="exact, by probing, or estimated by a head from one pass")
    parser.add_argument("--head", help="a head for this backbone; an embedded model has its own")
    add_probe(parser)
    parser.add_argument("--error", type=rate, help="with --draws: draw more until no entry's standard error, in nats, is above this")
    parser.add_argument("--seed", type=seed, default=0, help="of the draws")
    parser.add_argument("--block", type=positive, help="look at the first so many unknown positions only")
    parser.add_argument("--top", type=natural, default=10, help="how many of the strongest pairs to print")
    parser.add_argument("--skip-invalid", action="store_true", help="report bad canvases on standard error and go on")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--figure", type=picture, help="draw the matrix of the first canvas into this file")


def _decode(command: Adding) -> None:
    from pairmi.commands.text_arguments import add_prompt, add_tokenizer

    parser = command("decode", "fill the unknown positions of canvases")
    parser.epilog = POSITIONS
    add_backbone(parser)
    add_tokenizer(parser)
    parser.add_argument("--canvas", help=CANVAS)
    add_prompt(parser)
    parser.add_argument("--head", help="a head for this backbone; an embedded model has its own")
    parser.add_argument(
        "--rule", help="such as mi-bound:budget=0.3, see 'pairmi rules'; default: the one that the model was tuned to, else mi-guided"
    )
    parser.add_argument(
        "--verify", action="store_true", help="take the rule's choice as a draft; draw from the distribution of one-by-one decoding"
    )
    parser.add_argument("--seed", type=seed, default=0, help="of all random draws")
    parser.add_argument("--temperature", type=float, default=1.0, help="of the draws")
    parser.add_argument("--greedy", action="store_true", help="take the likeliest symbols")
    parser.add_argument(
        "--accept", type=fraction, default=0.999, help="with --greedy --verify: how sure the conditional must be of a draft"
    )
    parser.add_argument("--batch", type=positive, default=256, help="canvases decoded at once; no result depends on it")
    parser.add_argument("--anyway", action="store_true", help="fill canvases that are known to have no completion")
    parser.add_argument("--skip-invalid", action="store_true", help="report bad canvases on standard error and go on")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--jsonl", action="store_true", help="one JSON record a line")
    parser.add_argument("--trace", action="store_true", help="what was filled in each pass, and why the others waited")
    add_engine(parser)


def _design(command: Adding) -> None:
    parser = command("design", "sequences for a protein structure, by ProteinMPNN, as FASTA with scores")
    parser.add_argument("--structure", type=Path, required=True, help="a PDB file with the atoms of the backbone")
    parser.add_argument("--chain", help="only these chains, such as A or A,B; default: all")
    parser.add_argument("--fix", nargs="+", default=[], metavar="RESIDUES", help="keep these as they are: A:1-10 A:52A B, as in the file")
    parser.add_argument("--count", type=positive, default=10, help="how many designs")
    parser.add_argument("--rule", default="top-k:k=4,by=random", help="as for decode; the original's way is sequential:by=random")
    parser.add_argument("--head", help="a head for ProteinMPNN, for rules that look at pairs")
    parser.add_argument("--verify", action="store_true", help="as for decode")
    parser.add_argument("--seed", type=seed, default=0, help="of all random draws")
    parser.add_argument("--temperature", type=float, default=0.1, help="of the draws, as in the original")
    parser.add_argument("--greedy", action="store_true", help="take the likeliest residues")
    parser.add_argument("--batch", type=positive, default=64, help="sequences decoded at once; no result depends on it")
    parser.add_argument("--out", type=writable, help="FASTA file; default: standard output")


def _rules(command: Adding) -> None:
    command("rules", "the catalogue of decoding rules").add_argument("--json", action="store_true", help="as JSON")


def _data(command: Adding) -> None:
    parser = command("data", "make puzzles with a proved unique solution, one a line")
    parser.add_argument("task", choices=("sudoku",))
    parser.add_argument("--count", type=positive, default=10, help="how many")
    parser.add_argument("--givens", default="27", help="given cells: a number, or a range such as 25-29")
    parser.add_argument("--seed", type=seed, default=0, help="the same seed gives the same puzzles")
    parser.add_argument("--csv", action="store_true", help="puzzle,solution,givens,difficulty,technique with a header")
    parser.add_argument("--minimal", action="store_true", help="22-28 givens, none of which can be left out, of each difficulty in turn")


def _explore(command: Adding) -> None:
    parser = command("explore", "see on a local web page what depends on what, and watch the rules decode")
    parser.epilog = POSITIONS
    parser.add_argument(
        "--backbone", nargs="+", metavar="NAME", help="the models that the page offers, as for mi; default: all embedded ones"
    )
    parser.add_argument("--head", help="a head for the first backbone; an embedded model has its own")
    parser.add_argument("--canvas", help="what the page opens with, for the first backbone: text, or the first canvas of a file")
    parser.add_argument("--port", type=int, default=8765, help="0 = any free one")
    parser.add_argument("--host", default="127.0.0.1", help="where to listen; anything but this machine itself lets others in")
    parser.add_argument("--allow-host", nargs="+", default=[], metavar="NAME", help="further names by which browsers reach this machine")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")


def build_parser() -> Parser:
    """All commands with their options."""
    from pairmi.commands.bench_arguments import add_bench
    from pairmi.commands.fit_arguments import add_fit
    from pairmi.commands.labels_arguments import add_labels, add_plan
    from pairmi.commands.map_arguments import add_map
    from pairmi.commands.price_arguments import add_price, add_tune
    from pairmi.commands.train_arguments import add_train

    about = "Which unknown positions of a masked sequence model depend on each other, and decoding that uses it."
    parser = Parser(prog="pairmi", description=about, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"pairmi {pairmi.__version__}")
    command = parser.commands("command", required=False)
    for add in (_mi, add_map, _decode, _design, add_price, add_tune, add_fit, _rules, _data, add_labels, add_plan):
        add(command)
    add_train(command("train", "train a model; the same command goes on where a killed run stopped").commands("what"))
    add_bench(command("bench", "measure rules, heads and estimates; see experiments/ for the published tables").commands("name"))
    _explore(command)
    return parser


@contextmanager
def _interrupted_at_once() -> Iterator[None]:
    """Ctrl-C ends the program with one line while modules are imported: there is nothing to keep, and half-imported ones would complain."""

    def end(*_: object) -> None:
        os.write(2, b"pairmi: interrupted\n")
        os._exit(130)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 = done, 1 = done but for what is named on standard error, 2 = bad input, 130 = interrupted."""
    with _interrupted_at_once():
        parser = build_parser()
        try:
            options, unknown = parser.parse_known_args(arguments)
            if unknown:
                path = " ".join(filter(None, (getattr(options, level, None) for level in ("command", "name", "what"))))
                parser.exit(2, f"pairmi {path}: unrecognized arguments: {' '.join(unknown)}; see 'pairmi {path} --help'\n")
        except SystemExit as ended:  # --help, --version, or bad arguments
            return int(ended.code or 0)
        if options.command is None:
            parser.print_help()
            return 0
        from pairmi.spread.units import Incomplete
        from pairmi.types import PairmiError

        command = import_module(f"pairmi.commands.{options.command}")
    try:
        command.run(options)
        if skipped := vars(options).get("skipped"):
            raise Incomplete(f"{skipped} {'canvas was' if skipped == 1 else 'canvases were'} skipped, named above; all else is finished")
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
