"""Where canvases come from: an argument, a file, standard input."""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from pairmi.types import PairmiError


def canvas_lines(argument: str) -> Iterator[tuple[str, str]]:
    """Canvases with their names for messages: the argument itself, the lines of a file, or those of standard input."""
    if argument == "-":
        yield from _numbered("standard input", sys.stdin)
    elif os.path.isfile(argument):  # Path.is_file raises where a long canvas is no possible file name
        with Path(argument).open() as lines:
            yield from _numbered(argument, lines)
    elif "/" in argument or argument.endswith(".txt"):
        raise PairmiError(f"canvas: no file {argument}")
    else:
        yield "canvas", argument


def _numbered(source: str, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    some = False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and not text.startswith("#"):
            some = True
            yield f"{source}, line {number}", text
    if not some:
        raise PairmiError(f"canvas: {source} holds no canvas")
