"""Labelled states in parquet shards, each written whole or not at all, with what they were made by inside."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.nn import functional

from pairmi.backbones.checkpoint import UNSEALED, damage, sealed, write_whole
from pairmi.info import pairs
from pairmi.optional import needed
from pairmi.types import PairMatrix, PairmiError

Split = Literal["train", "validation", "test"]
NOTHING = -1  # the token of what is behind the end of a sequence, where longer ones stand beside it


@dataclass(frozen=True)
class Labels:
    """States with the mutual information that was measured in them, in nats.

    In a shard all have one length. Where shards of several are read together, L is the longest and what a shorter one lacks is
    `NOTHING`: no unknown position, so that no pair counts there.
    """

    tokens: Int[Tensor, "S L"]
    mi: Float[Tensor, "S T"]  # the upper triangle, row by row; not a number where neither position was probed
    entropies: Float[Tensor, "S L"]
    draws: Int[Tensor, " S"]  # 0 = exact, up to the certificate; K = unbiased, from K rows a position
    bound: Float[Tensor, " S"]  # the certificate: no known entry is further than this from the full probe; infinite for what was drawn
    asymmetry: Float[Tensor, " S"]  # the mean of |I_ij - I_ji| over the pairs that were probed from both sides; not a number if drawn
    inconsistency: Float[Tensor, " S"]  # the mean of KL(mixture of conditionals || marginal)
    rows: Int[Tensor, " S"]  # sequences evaluated, the base pass included
    masked: Int[Tensor, " S"]  # how many positions are unknown
    source: tuple[str, ...]  # uniform, solving, generating
    rule: tuple[str, ...]  # whose trajectory it was; empty = none's
    grid: tuple[str, ...]  # which complete sequence, or family of sequences, it is a part of

    def __len__(self) -> int:
        return len(self.tokens)

    def known(self, mask: int) -> Bool[Tensor, "S T"]:
        """The pairs of unknown positions whose mutual information was measured."""
        return triangle(pairs(self.tokens == mask)) & self.mi.isfinite()

    def has_pair(self, mask: int) -> bool:
        """Whether any such pair was measured, from a look at a few states at a time."""
        return any(bool(self.pick(some).known(mask).any()) for some in torch.arange(len(self)).split(256))

    def pick(self, index: Int[Tensor, " N"]) -> "Labels":
        """The same for some of the states."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        some: Any = {n: v[index] if isinstance(v, Tensor) else tuple(v[i] for i in index.tolist()) for n, v in values.items()}
        return Labels(**some)

    @property
    def lengths(self) -> Int[Tensor, " S"]:
        """Of the sequences."""
        return (self.tokens != NOTHING).sum(1)

    def by_length(self) -> list[tuple[Int[Tensor, " N"], "Labels"]]:
        """The places of the states of each length, and these states."""
        lengths = self.lengths
        places = {length: torch.nonzero(lengths == length)[:, 0] for length in lengths.unique().tolist()}
        return [(index, resized(self.pick(index), length)) for length, index in places.items()]

    def split(self, name: Split) -> "Labels":
        """Only one part; all states of one grid are in the same part."""
        return self.pick(torch.tensor([n for n, grid in enumerate(self.grid) if part_of(grid) == name], dtype=torch.long))


def part_of(grid: str) -> Split:
    """One grid in ten is for the test, one in twenty for validation, by its hash."""
    number = int(grid[:8], 16) % 20
    return "test" if number < 2 else "validation" if number == 2 else "train"


def triangle(matrices: Shaped[Tensor, "B L L"]) -> Shaped[Tensor, "B T"]:
    """The part above the diagonal, row by row."""
    upper = torch.triu_indices(matrices.shape[1], matrices.shape[1], 1, device=matrices.device)
    return matrices[:, upper[0], upper[1]]


def square(triangles: Float[Tensor, "B T"], length: int) -> PairMatrix:
    """The symmetric matrices with these upper triangles and a zero diagonal."""
    upper = torch.triu_indices(length, length, 1)
    out = triangles.new_zeros(len(triangles), length, length)
    out[:, upper[0], upper[1]] = triangles
    return out + out.transpose(1, 2)


def grown(matrices: PairMatrix, length: int) -> Float[Tensor, "B N N"]:
    """With zeros for more positions, or without the last ones."""
    more = length - matrices.shape[1]
    return functional.pad(matrices, (0, more, 0, more))


def resized(labels: Labels, length: int) -> Labels:
    """The same states with room for sequences of this length, which none of theirs may exceed."""
    old = labels.tokens.shape[1]
    if old == length:
        return labels
    tokens, entropies = (functional.pad(x, (0, length - old), value=fill) for x, fill in ((labels.tokens, NOTHING), (labels.entropies, 0)))
    return replace(labels, tokens=tokens, entropies=entropies, mi=triangle(grown(square(labels.mi, old), length)))


def arrow() -> tuple[ModuleType, ModuleType]:
    """Pyarrow and its parquet, imported when a file needs them."""
    return needed("pyarrow", "parquet", "'pairmi[labels]'"), needed("pyarrow.parquet", "parquet", "'pairmi[labels]'")


def shard_file(folder: Path, shard: int) -> Path:
    """Where a shard stands."""
    return folder / f"{shard:06d}.parquet"


def _column(value: Any, name: str) -> Any:
    """As arrow keeps it: text, floats, or the smallest integers that hold the tokens."""
    pa, _ = arrow()
    if not isinstance(value, Tensor):
        return pa.array(value, pa.string())
    array = value.numpy()
    kind: type[np.generic] = np.float32 if value.is_floating_point() else np.int32
    if name == "tokens" and array.size and array.min() >= 0:
        kind = next((small for small in (np.uint8, np.uint16) if array.max() <= np.iinfo(small).max), np.int32)
    array = array.astype(kind)
    flat = pa.array(array.reshape(-1))
    return flat if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, array.shape[1])


def write_shard(file: Path, labels: Labels, about: Mapping[str, Any]) -> None:
    """One file of states, whole or absent."""
    pa, parquet = arrow()
    columns = {field.name: _column(getattr(labels, field.name), field.name) for field in fields(labels)}
    table = pa.table(columns).replace_schema_metadata({"pairmi": json.dumps(about, sort_keys=True), "checksum": UNSEALED})
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, compression="zstd")
    write_whole(file, sealed(sink.getvalue().to_pybytes()))


def _value(column: Any) -> Any:
    """What `_column` made an arrow column of, with integers of 64 bits."""
    if column.type == "string":
        return tuple(column.to_pylist())
    flat = column if column.type.num_fields == 0 else column.flatten()
    array = flat.to_numpy(zero_copy_only=False)
    array = array.copy() if array.dtype == np.float32 else array.astype(np.int64)
    return torch.from_numpy(array if flat is column else array.reshape(len(column), column.type.list_size))


def read_shard(file: Path) -> tuple[Labels, dict[str, Any]]:
    """What `write_shard` wrote; refuses a file whose bytes have changed since."""
    pa, parquet = arrow()
    try:
        if wrong := damage(file):
            raise OSError(wrong)
        table = parquet.read_table(file)
    except (pa.ArrowException, OSError) as error:
        raise PairmiError(f"labels: {file} is damaged ({' '.join(str(error).split())}); remove it and label again") from error
    about, values = shard_about(file), {name: _value(table.column(name).combine_chunks()) for name in table.column_names}
    return Labels(**{"draws": torch.zeros(table.num_rows, dtype=torch.long)} | values), about  # once there were exact ones only


def shard_about(file: Path) -> dict[str, Any]:
    """What a shard says of itself, without reading its states."""
    pa, parquet = arrow()
    try:
        metadata = parquet.read_schema(file).metadata or {}
        about: dict[str, Any] = json.loads(metadata.get(b"pairmi", "null"))
    except (pa.ArrowException, OSError, json.JSONDecodeError) as error:
        said = " ".join(str(error).split())
        raise PairmiError(f"labels: {file} is damaged or no parquet file ({said}); remove it and label again") from error
    if about is None:
        raise PairmiError(f"labels: {file} has no description inside; it was not written by pairmi")
    return about


def shards(folder: Path) -> list[Path]:
    """The finished shards, in order."""
    return sorted(file for file in folder.glob("*.parquet") if file.stem.isdigit())


def check(folder: Path, settings: Mapping[str, Any]) -> set[int]:
    """The numbers of the finished shards; refuses a store that was made by other weights or settings."""
    mine = json.loads(json.dumps(settings))
    for file in shards(folder):
        theirs = shard_about(file)["settings"]
        if theirs != mine:
            names = ", ".join(name for name in sorted({*theirs, *mine}) if theirs.get(name) != mine.get(name))
            raise PairmiError(f"labels: {file} was made by other weights or settings (different: {names}); choose another --out")
    return {int(file.stem) for file in shards(folder)}


def _index(file: Path) -> set[int]:
    """The numbers in one index; none where there is none."""
    if not file.is_file():
        return set()
    if damage(file):
        raise PairmiError(f"labels: {file} is damaged; remove it and repeat the 'pairmi labels' that made {file.parent}")
    return set(json.loads(file.read_bytes())["shards"])


def write_index(folder: Path, part: tuple[int, int], finished: Iterable[int]) -> None:
    """Remember shards that one of n processes has finished; each has an index of its own, so that none overwrites another's."""
    file = folder / f"index-{part[0]}-of-{part[1]}.json"
    mine = {number for number in finished if number % part[1] == part[0]}
    if not mine <= (known := _index(file)):
        write_whole(file, sealed(json.dumps({"shards": sorted(mine | known), "checksum": UNSEALED}).encode()))


def missing(folder: Path) -> list[str]:
    """The names of shards that were finished and are gone; a store of before there were indices misses none."""
    finished = {number for file in folder.glob("index-*-of-*.json") for number in _index(file)}
    return [file.name for file in (shard_file(folder, number) for number in sorted(finished)) if not file.is_file()]


def read_store(folder: Path, limit: int | None = None) -> tuple[Labels, dict[str, Any]]:
    """All shards, or the first that hold `limit` states, and the settings that they share; refuses a store that has lost some."""
    files = shards(folder)
    if gone := missing(folder):
        names = ", ".join(gone[:5]) + (f" and {len(gone) - 5} more" if len(gone) > 5 else "")
        raise PairmiError(f"labels: {folder} has lost {names}; repeat the 'pairmi labels' that made it, which makes only what is missing")
    if not files:
        raise PairmiError(f"labels: no shards in {folder}; make some with 'pairmi labels --out {folder}'")
    settings = shard_about(files[0])["settings"]
    check(folder, settings)
    needed = len(files) if limit is None else -(-limit // settings["shard"])
    return joined_labels([read_shard(file)[0] for file in files[:needed]]), settings


def read_stores(folders: Sequence[Path], limit: int | None = None) -> tuple[Labels, dict[str, Any]]:
    """Several stores of one backbone as one, such as many drawn labels and a few exact ones; the settings are the first's."""
    found = [read_store(folder, limit) for folder in folders]
    for folder, (_, settings) in zip(folders, found, strict=True):
        if settings["backbone"] != found[0][1]["backbone"]:
            raise PairmiError(f"labels: {folders[0]} and {folder} were made by different weights; label again with one backbone")
    others = [settings for _, settings in found[1:]]
    return joined_labels([labels for labels, _ in found]), found[0][1] | ({"beside": others} if others else {})


def joined_labels(parts: Sequence[Labels]) -> Labels:
    """Several lots of states as one, with room for the longest."""
    longest = max(part.tokens.shape[1] for part in parts)
    sized = [resized(part, longest) for part in parts]
    columns: dict[str, list[Any]] = {field.name: [getattr(part, field.name) for part in sized] for field in fields(Labels)}
    whole: Any = {n: torch.cat(v) if isinstance(v[0], Tensor) else tuple(chain.from_iterable(v)) for n, v in columns.items()}
    return Labels(**whole)
