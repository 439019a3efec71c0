"""Named sequences from FASTA files, plain or gzipped, one record at a time."""

import gzip
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from pairmi.optional import needed
from pairmi.tasks.protein.residues import complaint
from pairmi.types import PairmiError


@dataclass(frozen=True)
class Record:
    """One entry of a FASTA file."""

    name: str  # the first word of its header
    header: str
    text: str

    @property
    def cluster(self) -> str:
        """The family that its header names (cluster=...); a sequence without one is its own family."""
        found = re.search(r"\bcluster=(\S+)", self.header)
        return found.group(1) if found else self.name


def is_fasta(file: Path) -> bool:
    """Whether the first line with anything in it is a header."""
    with open_text(file) as lines:
        return next((line for line in lines if line.strip()), "").startswith(">")


@contextmanager
def open_text(file: Path) -> Iterator[TextIO]:
    """A text file, unpacked if it is gzipped, whatever its name."""
    if not file.is_file():
        raise PairmiError(f"no file {file}")
    with file.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
    with gzip.open(file, "rt") if packed else file.open() as lines:
        try:
            yield lines
        except (EOFError, gzip.BadGzipFile, UnicodeDecodeError) as error:
            raise PairmiError(f"{file} is damaged or no text ({error})") from error


def parse_fasta(lines: Iterable[str]) -> Iterator[Record]:
    """The records of FASTA text, empty ones included."""
    fasta = needed("biotite.sequence.io.fasta", "FASTA", "'pairmi[protein]'")
    for header, text in fasta.FastaFile.read_iter(_Text(lines)):
        yield Record((header.split() or ["(no name)"])[0], header, text)


class _Text(io.TextIOBase):
    """Lines as a text file, which is what biotite iterates over."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = iter(lines)

    def __next__(self) -> str:  # type: ignore[override]
        return next(self.lines)


def read_proteins(file: Path, longest: int | None = None, blanks: str = "") -> list[Record]:
    """All records of a file, each checked to be a protein of at most `longest` residues, complete but for `blanks`."""
    with open_text(file) as lines:
        records = list(parse_fasta(lines))
    if not records:
        raise PairmiError(f"{file} holds no FASTA record")
    for record in records:
        wrong = complaint(record.text, blanks) if record.text else "it is empty"
        if wrong is None and longest is not None and len(record.text) > longest:
            wrong = f"{len(record.text)} residues are too many for this model; at most {longest}; cut the sequence, or leave it out"
        if wrong:
            raise PairmiError(f"{file}, record {record.name}: {wrong}")
    return records
