"""Scores of pairs in files and in other people's data types."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pairmi.backbones.checkpoint import UNSEALED, sealed, write_whole
from pairmi.pairs import page, picture
from pairmi.pairs.scores import Scores
from pairmi.store import arrow
from pairmi.types import PairmiError

PICTURES = ("png", "svg", "pdf", "jpg", "jpeg", "webp", "tif", "tiff", "eps", "ps")


def columns(scores: Scores) -> dict[str, Any]:
    """A line for each pair; positions from 0."""
    i, j, score = scores.listed()
    names, symbols = np.array(scores.names, dtype=object), np.array(scores.symbols, dtype=object)
    places = {"i": i.astype(np.int32), "j": j.astype(np.int32), "name_i": names[i], "name_j": names[j]}
    return places | {"symbol_i": symbols[i], "symbol_j": symbols[j], "score": score}


def _about(scores: Scores) -> dict[str, Any]:
    shown = {"symbols": scores.symbols, "names": scores.names, "shown": scores.shown}
    return shown | {"title": scores.title, "unit": scores.unit, "directed": scores.directed}


def parquet_bytes(scores: Scores, record: str | None = None, about: Mapping[str, Any] | None = None) -> bytes:
    """The pairs of one sequence as a parquet file with a checksum; with a `record`, that is the first column."""
    pa, parquet = arrow()
    values = columns(scores)
    named = {} if record is None else {"record": np.full(len(values["score"]), record, dtype=object)}
    text = {name: pa.string() for name in (*named, "name_i", "name_j", "symbol_i", "symbol_j")}
    kinds = text | {"i": pa.int32(), "j": pa.int32(), "score": pa.float32()}
    table = pa.table({name: pa.array(value, kinds[name]) for name, value in (named | values).items()})
    described = json.dumps(_about(scores) | dict(about or {}), sort_keys=True)
    sink = pa.BufferOutputStream()
    parquet.write_table(table.replace_schema_metadata({"pairmi": described, "checksum": UNSEALED}), sink, compression="zstd")
    return sealed(sink.getvalue().to_pybytes())


def _csv(scores: Scores) -> bytes:
    values, out = columns(scores), io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(values)
    writer.writerows(zip(*(value.tolist() for value in values.values()), strict=True))
    return out.getvalue().encode()


def _npz(scores: Scores) -> bytes:
    out = io.BytesIO()
    arrays: dict[str, Any] = {name: np.array(value) for name, value in _about(scores).items()}
    np.savez_compressed(out, matrix=scores.matrix, **arrays)
    return out.getvalue()


def _picture(kind: str) -> Callable[[Scores], bytes]:
    def made(scores: Scores) -> bytes:
        out = io.BytesIO()
        picture.drawn(scores).savefig(out, format=kind, dpi=150)
        return out.getvalue()

    return made


WRITERS: dict[str, Callable[[Scores], bytes]] = {
    "npz": _npz,
    "parquet": parquet_bytes,
    "csv": _csv,
    "html": lambda scores: page.html(scores).encode(),
} | {kind: _picture(kind) for kind in PICTURES}


def save(scores: Scores, file: Path) -> None:
    """Write one file, whole or not at all; its name says of which kind."""
    kind = file.suffix.removeprefix(".").lower()
    if kind not in WRITERS:
        raise PairmiError(f"save: expected a name that ends in .{', .'.join(list(WRITERS)[:6])} or another picture's, got {file.name!r}")
    write_whole(file, WRITERS[kind](scores))
