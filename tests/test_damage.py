"""Files that were damaged on a disk: each is refused, or what comes out of it is, bit by bit, what went in."""

import json
import random
import warnings
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from heads import labelled, low_rank, save_head, tiny
from pairmi.backbones.checkpoint import MARK, load_tensors, save_tensors
from pairmi.loading import with_head
from pairmi.store import Labels, read_shard, read_store, shard_file, write_index, write_shard
from pairmi.types import PairmiError

MODEL = tiny()
LABELS, SETTINGS = labelled(MODEL, 12)
WEIGHTS = {name: tensor.half() for name, tensor in MODEL.backbone.state_dict().items()}


def write(kind: str, file: Path) -> None:
    if kind == "head":
        save_head(file, low_rank(), MODEL)
    elif kind == "weights":
        save_tensors(file, WEIGHTS, {"shape": {"width": 16}, "kind": "transformer"})
    elif kind == "checkpoint":
        state = {f"optimizer.{name}": torch.rand_like(tensor) for name, tensor in WEIGHTS.items()}
        save_tensors(
            file, {f"model.{name}": tensor for name, tensor in WEIGHTS.items()} | state, {"job": {}, "rates": [1.0], "seconds": 1.5}
        )
    else:
        write_shard(file, LABELS, {"settings": SETTINGS, "provenance": {}})


def read(kind: str, file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    if kind != "shard":
        return load_tensors(file)
    labels, about = read_shard(file)
    return {field.name: getattr(labels, field.name) for field in fields(Labels)}, about


def harmless(kind: str, file: Path, true: tuple[dict[str, Any], dict[str, Any]]) -> bool:
    """False = refused; anything but a refusal must give the same content."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where the word "checksum" itself was hit
            values, about = read(kind, file)
    except PairmiError:
        return False
    assert about == true[1]
    assert values.keys() == true[0].keys()
    for name, value in values.items():
        assert torch.equal(value, true[0][name]) if isinstance(value, torch.Tensor) else value == true[0][name], name
    return True


@pytest.mark.parametrize("kind", ["weights", "head", "checkpoint", "shard"])
def test_every_one_of_a_thousand_flipped_bits_is_refused_or_harmless(kind: str, tmp_path: Path) -> None:
    file, rng = tmp_path / "file", random.Random(0)
    write(kind, file)
    content, true = file.read_bytes(), read(kind, file)
    accepted = 0
    for _ in range(1000):
        damaged, place = bytearray(content), rng.randrange(8 * len(content))
        damaged[place // 8] ^= 1 << place % 8
        file.write_bytes(damaged)
        accepted += harmless(kind, file, true)
    assert accepted < 10  # only where the mark before the checksum was hit


@pytest.mark.parametrize("kind", ["weights", "head", "checkpoint", "shard"])
def test_nor_does_a_flip_in_the_checksum_pass(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    write(kind, file)
    content, true = file.read_bytes(), read(kind, file)
    mark = content.index(MARK.encode())
    for place in range(8 * mark, 8 * (mark + len(MARK) + 64)):
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << place % 8
        file.write_bytes(damaged)
        assert not harmless(kind, file, true) or place // 8 < mark + len(MARK)


def damages(content: bytes) -> Iterator[bytes]:
    size = len(content)
    yield from (content[:keep] for keep in (0, 1, 7, 8, 100, size // 3, size // 2, size - 8, size - 1))
    for start, length in ((0, 8), (0, 512), (size // 2, 1), (size // 2, 512), (size - 600, 512), (size - 8, 8)):
        yield content[:start] + bytes(length) + content[start + length :]
    yield from (content + b"\0", content + content, content[1:], content[8:], content[:64] + content[80:], content[::-1])
    yield content[: size // 2] + content[size // 2 + 1 :]
    yield content[: size // 2] + b"x" + content[size // 2 :]
    yield content[: size // 2] + content[: size // 2]
    yield from (b"PK\x03\x04", b"PAR1", b"PAR1" + bytes(64) + b"PAR1", b"{}", b"\xff" * size, random.Random(0).randbytes(size))
    yield bytes(byte ^ 1 for byte in content)


@pytest.mark.parametrize("kind", ["weights", "head", "checkpoint", "shard"])
def test_cut_zeroed_and_foreign_files_are_refused(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    write(kind, file)
    true, changed = read(kind, file), [damaged for damaged in damages(file.read_bytes()) if damaged != file.read_bytes()]
    assert len(changed) == 31
    for number, damaged in enumerate(changed):
        file.write_bytes(damaged)
        assert not harmless(kind, file, true), number
        assert file.read_bytes() == damaged  # left as it is


def test_a_damaged_head_is_not_taken(tmp_path: Path) -> None:
    file = Path(save_head(tmp_path / "head", low_rank(), MODEL))
    content = bytearray(file.read_bytes())
    content[-3] ^= 64
    file.write_bytes(content)
    with pytest.raises(PairmiError, match=r"head is damaged or not a safetensors file \(its checksum is another\); fetch or train it"):
        with_head(MODEL, str(file))


def test_files_of_before_there_were_checksums_load_with_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_file(WEIGHTS, tmp_path / "old.safetensors", {"about": json.dumps({"kind": "transformer"})})
    with pytest.warns(UserWarning, match=r"/\*\.safetensors: without a checksum, so that damage goes unnoticed; write it again"):
        assert load_tensors(tmp_path / "old.safetensors")[0].keys() == WEIGHTS.keys()
    monkeypatch.setattr("pairmi.store.sealed", lambda content: content.replace(MARK.encode(), b"another--mark:"))
    write("shard", shard_file(tmp_path, 0))
    with pytest.warns(UserWarning, match=r"/\*\.parquet: without a checksum"):
        assert torch.equal(read_shard(shard_file(tmp_path, 0))[0].mi, LABELS.mi)


def test_a_store_names_the_shards_that_it_has_lost(tmp_path: Path) -> None:
    for number in range(8):
        write("shard", shard_file(tmp_path, number))
        write_index(tmp_path, (number % 2, 2), [number])  # two processes: each has its own index
    assert len(read_store(tmp_path)[0]) == 96
    shard_file(tmp_path, 5).unlink()
    message = r"has lost {}; repeat the 'pairmi labels' that made it, which makes only what is missing"
    with pytest.raises(PairmiError, match=message.format("000005.parquet")):
        read_store(tmp_path, limit=12)
    for number in (0, 1, 2, 3, 6):
        shard_file(tmp_path, number).unlink()
    with pytest.raises(PairmiError, match=message.format("000000.parquet, .*, 000005.parquet and 1 more")):
        read_store(tmp_path)


def test_a_damaged_index_is_refused(tmp_path: Path) -> None:
    write("shard", shard_file(tmp_path, 0))
    write_index(tmp_path, (0, 1), [0])
    index = tmp_path / "index-0-of-1.json"
    index.write_bytes(index.read_bytes().replace(b"[0]", b"[1]"))
    with pytest.raises(PairmiError, match=r"index-0-of-1\.json is damaged; remove it and repeat the 'pairmi labels' that made"):
        read_store(tmp_path)
    index.unlink()
    assert len(read_store(tmp_path)[0]) == 12  # without one, what is there is all
