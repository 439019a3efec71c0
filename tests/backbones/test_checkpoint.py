"""Files are whole or absent, whatever happens to the process that writes them; what is not ours is refused."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from pairmi.backbones.checkpoint import ensure_writable, fingerprint, load_tensors, save_tensors, write_whole
from pairmi.types import PairmiError

TENSORS = {
    "weight": torch.randn(3, 5, generator=torch.Generator().manual_seed(0)),
    "turned": torch.arange(12).view(3, 4).t(),
    "scalar": torch.tensor(2.5, dtype=torch.float64),
    "none": torch.zeros(0, 4),
    "half": torch.ones(2, dtype=torch.bfloat16),
    "flags": torch.tensor([True, False]),
}
ABOUT = {"shape": {"width": 3}, "name": "ünï", "rates": [0.1, 1 / 3]}

# Children that write for ever are killed at random moments; what stands at the target then is printed.
KILLED = """
import os, random, signal, sys, time
from pathlib import Path
import torch
from pairmi.backbones.checkpoint import load_tensors, save_tensors
torch.set_num_threads(1)  # a forked child has no thread pool
target, rng = Path(sys.argv[1]), random.Random(0)
save_tensors(target, {"x": torch.zeros(300_000)}, {"number": 0})
for attempt in range(25):
    child = os.fork()
    if not child:
        number = load_tensors(target)[1]["number"]
        while True:
            number += 1
            save_tensors(target, {"x": torch.full((300_000,), float(number))}, {"number": number})
    time.sleep(rng.uniform(0.02, 0.2))  # a busy disk takes tens of milliseconds a file
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if list(target.parent.glob(".*.part")):
        print("left", file=sys.stderr)
    tensors, about = load_tensors(target)
    print(about["number"], int(tensors["x"].min()), int(tensors["x"].max()), len(tensors["x"]))
"""


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "er" / "model.safetensors"
    save_tensors(file, TENSORS, ABOUT)
    tensors, about = load_tensors(file)
    assert about == ABOUT
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert tensors[name].dtype == tensor.dtype
        assert torch.equal(tensors[name], tensor)
    assert fingerprint(tensors) == fingerprint(TENSORS)
    assert [path.name for path in file.parent.iterdir()] == ["model.safetensors"]


def test_gradients_do_not_come_along(tmp_path: Path) -> None:
    save_tensors(tmp_path / "x", {"p": torch.nn.Parameter(torch.ones(2))}, {})
    assert not load_tensors(tmp_path / "x")[0]["p"].requires_grad


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    save_tensors(tmp_path / "a", TENSORS, ABOUT)
    save_tensors(tmp_path / "b", TENSORS, dict(reversed(ABOUT.items())))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_writer_that_is_killed_leaves_a_whole_file(tmp_path: Path) -> None:
    target = tmp_path / "model.safetensors"
    run = subprocess.run([sys.executable, "-c", KILLED, str(target)], capture_output=True, text=True, check=False)
    seen = [tuple(map(int, line.split())) for line in run.stdout.splitlines()]
    assert run.returncode == 0, run.stderr
    assert len(seen) == 25
    assert all(number == low == high and size == 300_000 for number, low, high, size in seen)
    assert seen[-1][0] > 3  # they did write
    assert "left" in run.stderr  # and some were killed while they did
    save_tensors(target, TENSORS, ABOUT)
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]  # the next writer sweeps up


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "log"
    write_whole(file, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(file, b"new and longer")
    assert file.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_parts_of_living_writers_are_left_alone(tmp_path: Path) -> None:
    alive, other = tmp_path / f".log.{os.getppid()}.part", tmp_path / ".blog.99999999.part"
    for file in (alive, other, tmp_path / ".log.99999999.part", tmp_path / ".log.nobody.part"):
        file.touch()
    write_whole(tmp_path / "log", b"new")
    assert {path.name for path in tmp_path.iterdir()} == {"log", alive.name, other.name}


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PairmiError, match=r"--out .*/file/deep: cannot be written into \(Not a directory\); choose another folder"):
        ensure_writable(tmp_path / "file" / "deep", "--out")
    ensure_writable(tmp_path / "new", "--out")
    assert list((tmp_path / "new").iterdir()) == []


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for place in (tmp_path / "absent.safetensors", tmp_path):
        with pytest.raises(PairmiError, match=f"weights: no file at {place}"):
            load_tensors(place)


@pytest.mark.parametrize("keep", [0, 1, 7, 8, 20, 300, -1])
def test_truncated_files_are_refused_and_left_alone(tmp_path: Path, keep: int) -> None:
    file = tmp_path / "model.safetensors"
    save_tensors(file, TENSORS, ABOUT)
    content = file.read_bytes()[:keep]
    file.write_bytes(content)
    with pytest.raises(PairmiError, match=r"weights: .*model\.safetensors is damaged or not a safetensors file \(.+\); fetch or train"):
        load_tensors(file)
    assert file.read_bytes() == content


@pytest.mark.parametrize("content", [b"PK\x03\x04 as torch.save writes", b"\x00" * 64, b"\xff" * 64, b'{"json": 1}', b"x" + b" " * 4096])
def test_foreign_files_are_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "model.pt"
    file.write_bytes(content)
    with warnings.catch_warnings(action="error"), pytest.raises(PairmiError, match="is damaged or not a safetensors file"):
        load_tensors(file)  # without a word of a checksum: it holds no weights
    assert file.read_bytes() == content


def test_a_damaged_header_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    save_tensors(file, TENSORS, ABOUT)
    content = bytearray(file.read_bytes())
    content[40:60] = b"\x00" * 20
    file.write_bytes(content)
    with pytest.raises(PairmiError, match="is damaged or not a safetensors file"):
        load_tensors(file)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"about": "[1, 2]"}])
def test_safetensors_of_others_are_refused(tmp_path: Path, metadata: dict[str, str] | None) -> None:
    save_file({"x": torch.zeros(2)}, tmp_path / "x", metadata)
    with pytest.raises(PairmiError, match="has no description inside; it was not written by pairmi"):
        load_tensors(tmp_path / "x")


def test_a_description_that_is_not_json_is_refused(tmp_path: Path) -> None:
    save_file({"x": torch.zeros(2)}, tmp_path / "x", {"about": "{"})
    with pytest.raises(PairmiError, match="is damaged or not a safetensors file"):
        load_tensors(tmp_path / "x")


def test_a_fingerprint_is_of_the_content_only() -> None:
    names = sorted(TENSORS, reverse=True)
    same = {name: TENSORS[name].clone().contiguous() for name in names}
    assert fingerprint(same) == fingerprint(TENSORS)
    assert len(fingerprint(TENSORS)) == 16
    assert fingerprint({"p": torch.nn.Parameter(torch.ones(2))}) == fingerprint({"p": torch.ones(2)})


def test_a_fingerprint_changes_with_every_bit_and_with_names_types_and_shapes() -> None:
    base, places = torch.arange(4, dtype=torch.int32), torch.arange(4, dtype=torch.int32)
    variants = [{"w": base}, {"v": base}, {"w": base, "v": base}, {}]
    variants += [{"w": other} for other in (base.long(), base.view(torch.float32), base.view(2, 2))]
    variants += [{"w": base ^ (places == place).int() << bit} for bit in range(32) for place in range(4)]
    assert len({fingerprint(variant) for variant in variants}) == len(variants) == 135
