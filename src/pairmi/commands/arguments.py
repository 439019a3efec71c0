"""What an argument of the command line may be: numbers in their ranges, and outputs that can be written, known before any work begins."""

import math
import os
from argparse import ArgumentTypeError
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

PICTURES = ("png", "pdf", "svg", "jpg", "jpeg", "webp", "tif", "tiff", "eps", "ps")


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """A whole number of a range."""

    def parsed(text: str) -> int:
        plain = text.removeprefix("-")
        if plain.isascii() and plain.isdigit() and len(plain) <= 20 and least <= int(text) and (most is None or int(text) <= most):
            return int(text)
        raise ArgumentTypeError(f"expected a whole number {f'from {least} to {most}' if most else f'of at least {least}'}, got {text!r}")

    return parsed


def number(least: float, most: float = math.inf, above: bool = False) -> Callable[[str], float]:
    """A finite number of a range, the lower end included unless it must be `above` that."""

    def parsed(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isfinite(value) and least <= value <= most and not (above and value == least):
            return value
        span = f"between {least:g} and {most:g}" if most < math.inf else f"{'above' if above else 'of at least'} {least:g}"
        raise ArgumentTypeError(f"expected a number {span}, got {text!r}")

    return parsed


positive, natural, several, seed = whole(1), whole(0), whole(2), whole(0, 2**63 - 1)
fraction, amount, rate = number(0.0, 1.0), number(0.0), number(0.0, above=True)


def writable(text: str) -> Path:
    """A file that can be written: no folder, in a folder that exists."""
    path = Path(text)
    if not text or path.is_dir():
        raise ArgumentTypeError(f"{text!r} is a folder, expected the name of a file" if text else "expected the name of a file, got ''")
    if not path.parent.is_dir():
        raise ArgumentTypeError(f"the folder {str(path.parent)!r} does not exist; make it first")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ArgumentTypeError(f"{text!r} cannot be written; choose another place")
    return path


def picture(text: str) -> Path:
    """A file that can be written and drawn into."""
    path = writable(text)
    if path.suffix.removeprefix(".").lower() not in PICTURES:
        raise ArgumentTypeError(f"expected a picture, such as {path.stem}.png ({', '.join(PICTURES)}), got {path.name!r}")
    if find_spec("matplotlib") is None:
        raise ArgumentTypeError("matplotlib is missing; pip install 'pairmi[plot]'")
    return path


def folder(text: str) -> Path:
    """A folder that exists or can be made."""
    path = Path(text)
    there = next(place for place in (path, *path.parents) if place.exists())
    if not text or not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise ArgumentTypeError(f"{text!r} is no folder that can be written" + (f": {str(there)!r} is a file" if there.is_file() else ""))
    return path
