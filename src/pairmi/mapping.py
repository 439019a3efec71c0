"""Maps of complete sequences: of one, of a list, or of a file of thousands, a parquet file each, which goes on where it stopped."""

import hashlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from tqdm import tqdm

from pairmi.backbones.checkpoint import ensure_writable, write_whole
from pairmi.backbones.identity import identify
from pairmi.backbones.masked_lm import MaskedLM
from pairmi.canvases import checked_model, many, one_or_many
from pairmi.mi.maps import TITLES, UNITS, By, Symmetrise, Way
from pairmi.model import Model, device_of, innermost, position_names
from pairmi.pairs.files import parquet_bytes
from pairmi.pairs.result import PairMap
from pairmi.provenance import provenance
from pairmi.spread.local import Local
from pairmi.spread.units import Engine, Outcome, Unit, bisect_failures, settled, task_name
from pairmi.store import shard_about, shard_file
from pairmi.types import Backbone, PairmiError


@one_or_many
def map(
    model: Any,
    sequence: Any,
    *,
    by: By = "mi",
    apc: bool = False,
    symmetrise: Symmetrise = "mean",
    symbols: int | None = None,
    drawn: bool = False,
    blocks: int = 4,
    deals: int = 2,
    floor: float = 0.01,
    batch_size: int = 256,
    seed: int = 0,
) -> tuple[list[PairMap], bool]:
    """What depends on what in a complete sequence, or in each of a list of them.

    `by` is one of: mi (mutual information, averaged over contexts in which two of `blocks` random blocks are unknown, `deals` times),
    jacobian (the categorical Jacobian), substitution (another symbol at i, the largest change of log-odds at j, one of `blocks` blocks
    unknown), masking (what the symbol at i tells of j, one of `blocks` blocks unknown: the cheapest). `apc` takes away what a position
    shares with all; `symmetrise` is mean, max or none ([changed i, observed j]). Over a large alphabet, jacobian and substitution try
    only the `symbols` likeliest at a position, or as many `drawn` ones.
    """
    model = checked_model(model)
    way = Way(by, apc, symmetrise, symbols, drawn, blocks, deals, floor, batch_size, seed)
    sequences, single = many(model, sequence, complete=True)
    return [mapped(model, tokens, way) for tokens in sequences], single


def mapped(model: Backbone, tokens: Int[Tensor, " L"], way: Way) -> PairMap:
    """The map of checked tokens."""
    matrix, rows = way.measure(model, tokens.to(device_of(model)))
    title = TITLES[way.by] + (", APC" if way.apc else "")
    symbols = tuple(model.vocab.letters(tokens))
    return PairMap(matrix.cpu(), symbols, position_names(model, len(tokens)), title, UNITS[way.by], rows, way.directed)


@dataclass(frozen=True)
class Sequence:
    """One sequence of a file."""

    name: str  # what messages call it
    record: str
    tokens: Int[Tensor, " L"]

    @property
    def digest(self) -> str:
        """By which a finished map is known to be of this sequence."""
        return hashlib.sha256(f"{self.record}\n{self.tokens.tolist()}".encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Mapping:
    """The job of a unit: the map of its one sequence."""

    model: Model
    way: Way

    def __call__(self, unit: Unit) -> Outcome:
        """The map, or why there is none."""
        (one,) = unit.items
        made, failures = bisect_failures(lambda some: mapped(self.model, some[0].tokens, self.way), [one], lambda it: it.name)
        return Outcome(unit, made[0] if made else None, tuple(failures))


def described(model: Model, way: Way) -> dict[str, Any]:
    """Everything that a map depends on, but for the sequence."""
    inner = innermost(model)
    dtype = inner.dtype if isinstance(inner, MaskedLM) else torch.float32
    about = {"backbone": identify(model), "model": model.name, "precision": str(dtype).removeprefix("torch.")}
    return about | {name: value for name, value in asdict(way).items() if name != "batch_rows"}


def map_all(
    model: Model, sequences: Iterable[Sequence], way: Way, folder: Path, engine: Engine | None = None, total: int | None = None
) -> int:
    """A parquet file for each sequence, numbered in their order; only those that are missing are made. Returns how many were.

    A file depends on the sequence, the weights and the way, and not on where or when it is made. One that was made of another sequence or
    in another way is refused. A sequence that cannot be mapped is named on standard error, and `Incomplete` is raised at the end.
    """
    ensure_writable(folder, "map: --out")
    settings = described(model, way)
    task, about = task_name("map", settings), {"settings": settings, "provenance": provenance()}
    bar, made = tqdm(total=total, desc="map", unit="sequence", file=sys.stderr, disable=None), 0

    def missing() -> Iterator[Unit]:
        for number, one in enumerate(sequences):
            if _finished(shard_file(folder, number), settings, one):
                bar.update()
            else:
                yield Unit(task, way.seed, number, number + 1, settings["backbone"], (one,))

    with bar:
        report = lambda failure: tqdm.write(f"map: {failure}", file=sys.stderr)  # noqa: E731
        for outcome in settled((engine or Local()).run(Mapping(model, way), missing(), in_order=False), report):
            bar.update()
            if outcome.value is not None:
                (one,) = outcome.unit.items
                found: PairMap = outcome.value
                known = about | {"record": one.record, "digest": one.digest, "rows": found.rows, "unit": outcome.unit.name}
                write_whole(shard_file(folder, outcome.unit.start), parquet_bytes(found.scores, one.record, known))
                made += 1
    return made


def _finished(file: Path, settings: dict[str, Any], one: Sequence) -> bool:
    """Whether this map is there; refuses one that is of something else."""
    if not file.is_file():
        return False
    theirs = shard_about(file)
    names = sorted(name for name in {*theirs["settings"], *settings} if theirs["settings"].get(name) != settings.get(name))
    if theirs["digest"] != one.digest:
        names.append(f"the sequence, {theirs['record']} there and {one.record} here")
    if names:
        raise PairmiError(f"{one.name}: {file} was made of something else (different: {', '.join(names)}); choose another --out")
    return True
