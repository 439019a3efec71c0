"""The command line: parsing of arguments, and nothing that takes long to import before a command needs it."""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

import pairmi
from pairmi.commands.parser import TABLE, Parser


def build_parser() -> Parser:
    """All commands with their options."""
    parser = Parser(prog="pairmi", **TABLE["program"], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"pairmi {pairmi.__version__}")
    parser.add_commands("command", required=False)
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
        if threads := vars(options).get("threads"):
            import_module("torch").set_num_threads(threads)
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
