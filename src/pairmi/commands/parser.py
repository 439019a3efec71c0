"""The parser of the command line, built from the table of commands and their options in `options.toml`."""

import argparse
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn

from pairmi.commands import arguments

TABLE = tomllib.loads((files("pairmi.commands") / "options.toml").read_text())
TYPES = vars(arguments) | {"int": int, "float": float, "Path": Path}
POSITIONS = "Positions are counted from 1 (Sudoku: r1c1 is the upper left cell); in JSON, as in Python, from 0."


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with its arguments."""

    def error(self, message: str) -> NoReturn:
        """Exit 2."""
        self.exit(2, f"{self.prog}: {' '.join(message.split())}; see '{self.prog} --help'\n")

    def add_commands(self, dest: str, under: str = "", required: bool = True) -> None:
        """All commands of the table, or those under one of them."""
        below = self.add_subparsers(dest=dest, required=required, metavar=dest.upper())
        for path, about in TABLE["command"].items():
            group, _, name = path.rpartition(" ")
            if group == under:
                shown = {"help": about["about"], "description": about["about"], "epilog": POSITIONS if "numbered" in about else None}
                parser = below.add_parser(name, formatter_class=argparse.ArgumentDefaultsHelpFormatter, **shown)
                parser.add_options(about)
                if "commands" in about:
                    parser.add_commands(about["commands"], path)

    def add_options(self, options: dict[str, Any], target: Any = None) -> None:
        """Options of a table, to this parser or to a group of it."""
        for name, own in ((name, own) for names, own in options.items() for name in names.split()):
            if name in TABLE["group"]:
                self.add_group(name, target)
            elif isinstance(own, dict):
                how = TABLE["option"].get(name, {}) | own
                kind = how.pop("type", None)
                how |= {"action": "store_true"} if kind == "flag" else {"type": TYPES[kind]} if kind else {}
                (target or self).add_argument(how.pop("name", f"--{name}"), **how)

    def add_group(self, name: str, target: Any = None) -> None:
        """The options of a group: under its title, or of which one is needed and no two, or as if they stood here."""
        options = TABLE["group"][name]
        if "title" in options:
            target = self.add_argument_group(options["title"])
        elif "either" in options:
            target = self.add_mutually_exclusive_group(required=True)
        self.add_options(options, target)
