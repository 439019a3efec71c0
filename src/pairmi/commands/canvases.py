"""Where canvases come from: an argument, a file or standard input, with one canvas a line or as FASTA."""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from jaxtyping import Int
from torch import Tensor

from pairmi.canvases import tokenise
from pairmi.model import Model
from pairmi.tasks.protein.fasta import open_text, parse_fasta
from pairmi.types import PairmiError


@dataclass(frozen=True)
class Canvas:
    """One canvas of the input."""

    number: int  # its place in the input, what was skipped included
    name: str  # what messages call it
    text: str
    tokens: Int[Tensor, " L"]
    record: str | None  # its name in a FASTA file


def canvas_lines(argument: str) -> Iterator[tuple[str, str, str | None]]:
    """Name for messages, text and name in a FASTA file of each canvas: the argument itself, those of a file, or of standard input."""
    if argument == "-":
        yield from _canvases("standard input", sys.stdin)
    elif os.path.isfile(argument):  # Path.is_file raises where a long canvas is no possible file name
        with open_text(Path(argument)) as lines:
            yield from _canvases(argument, lines)
    elif "/" in argument or argument.endswith((".txt", ".fasta", ".fa", ".gz")):
        raise PairmiError(f"canvas: no file {argument}")
    else:
        yield "canvas", argument, None


def _canvases(source: str, lines: Iterable[str]) -> Iterator[tuple[str, str, str | None]]:
    """FASTA if the first line that is not empty begins with '>', else one canvas a line."""
    numbered = ((number, line.lstrip("\ufeff").strip()) for number, line in enumerate(lines, 1))
    filled = ((number, text) for number, text in numbered if text)
    first = next(filled, (1, ""))
    some = False
    if first[1].startswith(">"):
        for count, record in enumerate(parse_fasta(text for _, text in chain([first], filled)), 1):
            some = True
            yield f"{source}, record {count} ({record.name})", record.text, record.name
    else:
        if first[1].startswith("puzzle,"):  # the header of our own 'pairmi data --csv': the canvas is the first column
            first, filled = next(filled, (1, "")), ((number, text.partition(",")[0]) for number, text in filled)
            first = (first[0], first[1].partition(",")[0])
        for number, text in chain([first], filled):
            if text and not text.startswith("#"):
                some = True
                yield f"{source}, line {number}", text, None
    if not some:
        raise PairmiError(f"canvas: {source} holds no canvas")


def reads_fasta(argument: str) -> bool:
    """Whether a canvas argument is a FASTA file."""
    if not os.path.isfile(argument):
        return False
    with open_text(Path(argument)) as lines:
        return next((line for line in lines if line.strip()), "").startswith(">")


def checked_canvases(
    model: Model, options: argparse.Namespace, check: Callable[[Canvas], None] = lambda canvas: None, complete: bool = False
) -> Iterator[Canvas]:
    """Every canvas that the model takes and `check` does not refuse; the first bad one ends it, or with --skip-invalid is reported."""
    options.skipped = 0
    for number, (name, text, record) in enumerate(canvas_lines(options.canvas)):
        try:
            wrong = model.task.complaint(text, model.vocab.blanks)
            if wrong:
                raise PairmiError(f"{name}: {wrong}")
            canvas = Canvas(number, name, text, tokenise(model, text, name, complete), record)
            check(canvas)
        except PairmiError as error:
            if not options.skip_invalid:
                raise
            print(f"pairmi {options.command}: skipped {error}", file=sys.stderr)
            options.skipped += 1  # which makes the command exit with 1
        else:
            yield canvas
