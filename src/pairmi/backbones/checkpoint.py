"""Tensors with their configuration and provenance in one safetensors file, written whole or not at all."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from pairmi.types import PairmiError


def write_whole(path: Path, content: bytes) -> None:
    """Put `content` at `path` so that a reader, or a crash, sees the old file or the new one and nothing between."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with open(part, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def save_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """Write tensors and a JSON-able description of them."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_whole(path, save(plain, {"about": json.dumps(about, sort_keys=True)}))


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote."""
    if not path.is_file():
        raise PairmiError(f"weights: no file at {path}")
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {}).get("about", "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, json.JSONDecodeError, OSError) as error:
        raise PairmiError(f"weights: {path} is damaged or not a safetensors file ({error}); fetch or train it again") from error
    if not isinstance(about, dict):
        raise PairmiError(f"weights: {path} has no description inside; it was not written by pairmi")
    return tensors, about


def fingerprint(tensors: Mapping[str, Tensor]) -> str:
    """A short name for exactly these tensors, so that labels and heads can refuse other weights."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name}{tensor.dtype}{tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]
