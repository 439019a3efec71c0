from pathlib import Path

import pytest
import torch

from pairmi.bench.generation import fill, generate
from pairmi.bench.ledger import Ledger
from pairmi.commit import Sampling
from pairmi.loading import load
from pairmi.model import Model
from proteins import opinionated_weights


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return load(opinionated_weights(tmp_path_factory.mktemp("weights") / "p.safetensors"))


def test_canvases_of_all_lengths_are_filled_in_their_order_whatever_the_batch(model: Model) -> None:
    canvases = [torch.full((length,), 20) for length in (9, 5, 9, 7)]
    one, other = (fill(model, canvases, "top-k:k=3", Sampling(4), batch) for batch in (1, 64))
    assert [len(text) for text in one.texts] == [9, 5, 9, 7]
    assert one.texts == other.texts
    assert one.passes == one.rows == (3 + 2 + 3 + 3) / 4
    assert one.probe_rows == 0
    assert fill(model, canvases[:1], "mi-bound", Sampling(4), 8).probe_rows > 20


def test_what_is_in_the_ledger_is_not_made_again(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = generate(model, Ledger(tmp_path / "l.jsonl"), "sequential", [5, 6], 1)
    monkeypatch.setattr("pairmi.bench.generation.fill", lambda *arguments: pytest.fail("made again"))
    assert generate(model, Ledger(tmp_path / "l.jsonl"), "sequential", [5, 6], 1) == made
    with pytest.raises(pytest.fail.Exception, match="made again"):
        generate(model, Ledger(tmp_path / "l.jsonl"), "sequential", [5, 6], 2)


def test_an_interrupted_set_goes_on_and_is_what_it_would_have_been(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = [5, 6, 7, 5, 6]
    whole = generate(model, Ledger(), "top-k:k=2", lengths, 1)
    monkeypatch.setattr("pairmi.bench.generation.PIECE", 2)
    with monkeypatch.context() as patch:
        patch.setattr("pairmi.bench.generation.fill", lambda *a: pytest.fail("killed") if a[-1] else fill(*a))
        with pytest.raises(pytest.fail.Exception, match="killed"):
            generate(model, Ledger(tmp_path / "l.jsonl"), "top-k:k=2", lengths, 1)
    assert len((tmp_path / "l.jsonl").read_text().splitlines()) == 1
    parts = generate(model, Ledger(tmp_path / "l.jsonl"), "top-k:k=2", lengths, 1)
    assert parts.texts == whole.texts
    assert parts.passes == pytest.approx(whole.passes)
    assert len((tmp_path / "l.jsonl").read_text().splitlines()) == 3
