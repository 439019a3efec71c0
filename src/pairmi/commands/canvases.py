"""Where canvases come from: an argument, a file or standard input, with one canvas a line or as FASTA."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from jaxtyping import Int
from torch import Tensor

from pairmi.backbones.text import MASKS
from pairmi.canvases import continuation, tokenise
from pairmi.model import Model
from pairmi.tasks.protein.fasta import is_fasta, open_text, parse_fasta
from pairmi.types import PairmiError


@dataclass(frozen=True)
class Canvas:
    """One canvas of the input."""

    number: int  # its place in the input, what was skipped included
    name: str  # what messages call it
    text: str
    tokens: Int[Tensor, " L"]
    record: str | None  # its name in a FASTA file


FILES = (".txt", ".csv", ".fasta", ".fa", ".gz", ".jsonl")


def canvas_lines(argument: str) -> Iterator[tuple[str, str, str | None]]:
    """Name for messages, text and name in a FASTA file of each canvas: the argument itself, those of a file, or of standard input."""
    if argument == "-":
        yield from _canvases("standard input", sys.stdin)
    elif os.path.isfile(argument):  # Path.is_file raises where a long canvas is no possible file name
        with open_text(Path(argument)) as lines:
            yield from _canvases(argument, lines)
    elif os.path.isdir(argument) and set(argument) - set("._"):  # "." and ".." are canvases
        raise PairmiError(f"canvas: {argument} is a folder, expected a canvas or a file of canvases; name a file in it")
    elif ("/" in argument and " " not in argument and not any(mask in argument for mask in MASKS)) or argument.endswith(FILES):
        raise PairmiError(f"canvas: no file {argument}")
    else:
        yield "canvas", argument, None


def _canvases(source: str, lines: Iterable[str]) -> Iterator[tuple[str, str, str | None]]:
    """FASTA if the first line that is not empty begins with '>', JSON if it begins with '{', else one canvas a line."""
    numbered = ((number, line.lstrip("\ufeff").strip()) for number, line in enumerate(lines, 1))
    filled = ((number, text) for number, text in numbered if text)
    first = next(filled, (1, ""))
    whole = chain([first], filled)
    found: Iterator[tuple[str, str, str | None]]
    if first[1].startswith(">"):
        records = enumerate(parse_fasta(text for _, text in whole), 1)
        found = ((f"{source}, record {count} ({record.name})", record.text, record.name) for count, record in records)
    elif first[1].startswith("{"):
        found = ((name, *_record(name, text)) for name, text in ((f"{source}, line {number}", text) for number, text in whole))
    else:
        if first[1].startswith("puzzle,"):  # the header of our own 'pairmi data --csv': the canvas is the first column
            whole = chain((number, text.partition(",")[0]) for number, text in filled)
        found = ((f"{source}, line {number}", text, None) for number, text in whole if text and not text.startswith("#"))
    one = next(found, None)
    if one is None:
        raise PairmiError(f"canvas: {source} holds no canvas")
    yield from chain([one], found)


def _record(name: str, line: str) -> tuple[str, str | None]:
    """The text of a JSON record, and its id if it has one."""
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise PairmiError(f'{name}: no JSON ({error.msg}); expected an object such as {{"text": ...}}') from None
    texts = [record[key] for key in ("text", "canvas", "prompt") if key in record] if isinstance(record, dict) else []
    if len(texts) != 1 or not isinstance(texts[0], str):
        raise PairmiError(f'{name}: expected a JSON object with one "text", "canvas" or "prompt", and perhaps an "id"')
    return texts[0], None if record.get("id") is None else str(record["id"])


def reads_fasta(argument: str | None) -> bool:
    """Whether a canvas argument is a FASTA file."""
    return argument is not None and os.path.isfile(argument) and is_fasta(Path(argument))


def text_options(options: argparse.Namespace) -> dict[str, Any]:
    """What `load` takes for models of text."""
    return {"tokenizer": options.tokenizer, "allow_code": options.allow_code, "revision": options.revision}


def checked_canvases(
    model: Model, options: argparse.Namespace, check: Callable[[Canvas], None] = lambda canvas: None, complete: bool = False
) -> Iterator[Canvas]:
    """Every canvas that the model takes and `check` does not refuse; the first bad one ends it, or with --skip-invalid is reported."""
    options.skipped, prompt = 0, vars(options).get("prompt")
    for number, (name, text, record) in enumerate(canvas_lines(options.canvas if prompt is None else prompt)):
        try:
            wrong = model.task.complaint(text, model.vocab.blanks)
            if wrong:
                raise PairmiError(f"{name}: {wrong}")
            if prompt is None:
                tokens = tokenise(model, text, name, complete)
            else:
                tokens = continuation(model, text, options.new_tokens, options.chat, name.replace("canvas", "prompt"))
            canvas = Canvas(number, name, text, tokens, record)
            check(canvas)
        except PairmiError as error:
            if not options.skip_invalid:
                raise
            print(f"pairmi {options.command}: skipped {error}", file=sys.stderr)
            options.skipped += 1  # which makes the command exit with 1
        else:
            yield canvas
