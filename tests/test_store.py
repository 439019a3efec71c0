import json
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch

from heads import labelled, tiny
from pairmi.store import (
    NOTHING,
    Labels,
    check,
    joined_labels,
    part_of,
    read_shard,
    read_store,
    resized,
    shard_file,
    square,
    triangle,
    write_shard,
)
from pairmi.types import PairmiError

LABELS, SETTINGS = labelled(tiny(), 40)
ABOUT = {"settings": SETTINGS, "provenance": {}}


def same(first: Labels, second: Labels) -> bool:
    pairs = [(getattr(first, field.name), getattr(second, field.name)) for field in fields(Labels)]
    return all(torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in pairs)


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    write_shard(shard_file(tmp_path, 0), LABELS, ABOUT)
    found, about = read_shard(tmp_path / "000000.parquet")
    assert same(found, LABELS)
    assert about == json.loads(json.dumps(ABOUT))
    write_shard(shard_file(tmp_path, 7), LABELS.pick(torch.tensor([3, 1])), ABOUT)
    (tmp_path / ".000009.parquet.77.part").write_bytes(b"half a shard")
    assert check(tmp_path, SETTINGS) == {0, 7}
    both, settings = read_store(tmp_path)
    assert len(both) == 42
    assert both.grid[40:] == (LABELS.grid[3], LABELS.grid[1])
    assert settings == json.loads(json.dumps(SETTINGS))
    assert len(read_store(tmp_path, limit=5)[0]) == 40


@pytest.mark.parametrize(("most", "kind"), [(255, "uint8"), (256, "uint16"), (65_535, "uint16"), (65_536, "int32"), (150_000, "int32")])
def test_tokens_of_any_alphabet_come_back(tmp_path: Path, most: int, kind: str) -> None:
    from pyarrow import parquet

    tokens = torch.where(LABELS.tokens == 4, most, LABELS.tokens)
    write_shard(shard_file(tmp_path, 0), replace(LABELS, tokens=tokens), ABOUT)
    assert torch.equal(read_shard(shard_file(tmp_path, 0))[0].tokens, tokens)
    assert str(parquet.read_schema(shard_file(tmp_path, 0)).field("tokens").type.value_type) == kind


def test_triangles() -> None:
    raw = torch.rand(3, 5, 5)
    matrix = torch.triu(raw, 1) + torch.triu(raw, 1).transpose(1, 2)
    assert triangle(matrix).shape == (3, 10)
    assert torch.equal(square(triangle(matrix), 5), matrix)
    assert triangle(matrix)[0, :4].tolist() == matrix[0, 0, 1:].tolist()


def test_states_of_several_lengths_stand_beside_each_other() -> None:
    short = resized(LABELS.pick(torch.tensor([4, 9])), 6)
    assert torch.equal(square(short.mi, 6), square(LABELS.mi[[4, 9]], 8)[:, :6, :6])
    both = joined_labels([LABELS.pick(torch.arange(3)), short, LABELS.pick(torch.tensor([5]))])
    assert both.lengths.tolist() == [8, 8, 8, 6, 6, 8]
    assert (both.tokens[3:5, 6:] == NOTHING).all()
    assert (both.entropies[3:5, 6:] == 0).all()
    assert (square(both.mi, 8)[3:5, 6:] == 0).all()
    lots = both.by_length()
    assert [places.tolist() for places, _ in lots] == [[3, 4], [0, 1, 2, 5]]
    assert same(lots[0][1], short)
    assert same(lots[1][1], LABELS.pick(torch.tensor([0, 1, 2, 5])))
    assert [places.tolist() for places, _ in LABELS.by_length()] == [list(range(40))]


def test_splits_are_disjoint_and_by_grid() -> None:
    parts = {name: LABELS.split(name) for name in ("train", "validation", "test")}
    assert sum(map(len, parts.values())) == len(LABELS)
    grids = [set(part.grid) for part in parts.values()]
    assert len(set.union(*grids)) == sum(map(len, grids))
    counts = [part_of(f"{n * 2654435761 % 2**32:08x}00000000") for n in range(20_000)]
    assert abs(counts.count("test") - 2000) < 200
    assert abs(counts.count("validation") - 1000) < 150


@pytest.mark.parametrize("change", [{"backbone": "0" * 16}, {"floor": 0.5}, {"seed": 9}, {"form": "kl"}])
def test_a_store_of_other_weights_or_settings_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    write_shard(shard_file(tmp_path, 0), LABELS, ABOUT)
    with pytest.raises(
        PairmiError, match=rf"was made by other weights or settings \(different: {next(iter(change))}\); choose another --out"
    ):
        check(tmp_path, SETTINGS | change)


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PairmiError, match=r"labels: no shards in .*; make some with 'pairmi labels --out"):
        read_store(tmp_path)
    file = shard_file(tmp_path, 0)
    file.write_bytes(b"nothing")
    with pytest.raises(PairmiError, match="is damaged or no parquet file"):
        read_store(tmp_path)
    write_shard(file, LABELS, ABOUT)
    content = bytearray(file.read_bytes())
    content[4:2000] = bytes(1996)
    file.write_bytes(content)
    with pytest.raises(PairmiError, match=r"is damaged \(.*\); remove it and label again"):
        read_shard(file)
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"x": [1]}), file)
    with pytest.raises(PairmiError, match="has no description inside; it was not written by pairmi"):
        read_shard(file)


def test_without_pyarrow_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(PairmiError, match=r"parquet: pyarrow is missing; pip install 'pairmi\[labels\]'"):
        write_shard(tmp_path / "x", replace(LABELS), ABOUT)
