"""Tensors with their configuration, provenance and checksum in one safetensors file, written whole or not at all."""

import hashlib
import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from pairmi.types import PairmiError

MARK = "pairmi-sha256:"  # before the checksum, once in a file
UNSEALED = MARK + 64 * "0"  # what a file holds while its checksum is computed


def sealed(content: bytes) -> bytes:
    """The same with its `UNSEALED` replaced by a checksum over all other bytes."""
    return content.replace(UNSEALED.encode(), f"{MARK}{hashlib.sha256(content).hexdigest()}".encode(), 1)


def damage(path: Path) -> str:
    """What the checksum says against a file; empty = nothing. A file of before there were checksums passes, with a warning."""
    content = path.read_bytes()
    place = content.find(MARK.encode()) + len(MARK)
    if place < len(MARK):
        warnings.warn(f"{path.parent}/*{path.suffix}: without a checksum, so that damage goes unnoticed; write it again", stacklevel=3)
        return ""
    zeroed = content[:place] + 64 * b"0" + content[place + 64 :]
    return "" if content[place : place + 64] == hashlib.sha256(zeroed).hexdigest().encode() else "its checksum is another"


def write_whole(path: Path, content: bytes) -> None:
    """Put `content` at `path` so that a reader, or a crash, sees the old file or the new one and nothing between."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for stale in path.parent.glob(f".{path.name}.*.part"):
        if not _alive(stale.suffixes[-2][1:]):
            stale.unlink(missing_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _alive(process: str) -> bool:
    """Whether a process of this number is running here."""
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:  # somebody else's
        return True
    return True


def ensure_writable(folder: Path, option: str) -> None:
    """Refuse a folder that nothing can be written into, before any work is done for it."""
    try:
        write_whole(folder / ".writable", b"")
        (folder / ".writable").unlink(missing_ok=True)  # another process may have tried, too
    except OSError as error:
        raise PairmiError(f"{option} {folder}: cannot be written into ({error.strerror}); choose another folder") from error


def save_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """Write tensors and a JSON-able description of them."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    described = json.dumps({**about, "checksum": UNSEALED}, sort_keys=True)  # one entry: safetensors keeps no order of several
    write_whole(path, sealed(save(plain, {"about": described})))


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote."""
    if not path.is_file():
        raise PairmiError(f"weights: no file at {path}")
    try:
        with safe_open(path, framework="pt") as file:  # refuses what never was one, before a missing checksum is spoken of
            if wrong := damage(path):
                raise SafetensorError(wrong)
            about = json.loads((file.metadata() or {}).get("about", "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, json.JSONDecodeError, OSError) as error:
        raise PairmiError(f"weights: {path} is damaged or not a safetensors file ({error}); fetch or train it again") from error
    if not isinstance(about, dict):
        raise PairmiError(f"weights: {path} has no description inside; it was not written by pairmi")
    about.pop("checksum", None)
    return tensors, about


def learnt(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Of a training checkpoint the network alone: the average of its weights, if one was kept; of other files everything."""
    for part in ("average.", "model."):
        if found := {name.removeprefix(part): tensor for name, tensor in tensors.items() if name.startswith(part)}:
            return found
    return dict(tensors)


def fingerprint(tensors: Mapping[str, Tensor]) -> str:
    """A short name for exactly these tensors, so that labels and heads can refuse other weights."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name}{tensor.dtype}{tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]
