"""States of a model of text, from the lines of a file."""

import gzip
from pathlib import Path

import pytest
import torch

import pairmi
from pairmi.cli import main
from pairmi.loading import load
from pairmi.store import part_of, read_store
from pairmi.training.states import read_text
from pairmi.types import PairmiError

LINES = [
    "北京大学的学生在图书馆看书。",
    "现代文学的奠基人",
    "大多数的车是公司的财产。",
    "他在家",
    "中国的首都是北京",
    "他喜欢看书",
]  # the last is for validation


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("text") / "lines.txt.gz"
    file.write_bytes(gzip.compress("\n".join([*LINES, "", "家"]).encode()))
    return file


def test_states_are_pieces_of_lines_of_one_length(text: Path) -> None:
    model = load("albert-zh")
    states = read_text(model, text)
    assert len(states.lines) == len(LINES)  # neither the empty line nor the one without a pair
    for shard in range(6):
        drawn = states.draw(model, 0, shard, 12)
        assert len({len(state.tokens) for state in drawn}) == 1
        assert len({tuple(state.tokens.tolist()) for state in drawn}) == len(drawn)
        for state in drawn:
            known = state.tokens != model.vocab.size
            assert int((~known).sum()) > 1
            windows = [line.unfold(0, len(known), 1) for line in states.lines if len(line) >= len(known)]
            assert any(bool((window == state.tokens)[:, known].all(1).any()) for window in windows)
        again = states.draw(model, 0, shard, 12)
        assert all(torch.equal(one.tokens, other.tokens) for one, other in zip(drawn, again, strict=True))


def test_a_head_learns_from_drawn_labels_of_a_text_model(text: Path, tmp_path: Path) -> None:
    labels = [
        "labels",
        "--backbone",
        "albert-zh",
        "--data",
        str(text),
        "--draws",
        "1",
        "--positions",
        "2",
        "--shard",
        "16",
        "--threads",
        "1",
    ]
    main([*labels, "--states", "64", "--out", str(tmp_path / "labels")])
    found, settings = read_store(tmp_path / "labels")
    assert settings["states"]["name"] == "text"
    assert {"train", "validation"} <= {part_of(grid) for grid in found.grid}
    sizes = ["--inner", "8", "--forms", "2", "--rank", "4", "--mixer", "4", "--layers", "4", "--batch", "4", "--loss", "poisson"]
    train = ["train", "head", "--backbone", "albert-zh", "--labels", str(tmp_path / "labels"), "--threads", "1"]
    main([*train, *sizes, "--steps", "4", "--run", str(tmp_path / "run"), "--out", str(tmp_path / "head.safetensors")])
    model = load("albert-zh", head=str(tmp_path / "head.safetensors"))
    mi = pairmi.mutual_information(model, "北京[MASK][MASK]的学生", head=str(tmp_path / "head.safetensors"))
    assert 0 < float(mi.matrix[2, 3]) <= float(mi.entropies[2:4].min())


def test_a_text_model_needs_text(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(PairmiError, match="has no line of at least two tokens that albert-zh knows"):
        read_text(load("albert-zh"), tmp_path / "empty.txt")
