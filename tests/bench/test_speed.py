import pytest
import torch

from pairmi.backbones.transformer import TransformerConfig
from pairmi.bench import speed
from pairmi.draw import Streams
from pairmi.selectors.catalogue import CATALOGUE
from worlds import Incoherent, unknown


def test_every_rule_is_timed_against_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "SHAPE", TransformerConfig(width=8, depth=1, heads=1, length=12))
    records = list(speed.selection_times(batch=2, rounds=2))
    assert [record["rule"] for record in records] == list(CATALOGUE)
    for record in records:
        assert set(record) == {"rule", "selection_ms", "pass_ms", "share", "batch", "parameters"}
        assert min(record["selection_ms"], record["pass_ms"], record["share"]) > 0
        assert record["batch"] == 2


def test_the_timed_model_has_the_size_of_the_papers() -> None:
    assert speed.SHAPE.length == 81
    assert 4.0e6 < speed.SHAPE.depth * 12 * speed.SHAPE.width**2 < 4.2e6


def test_a_given_matrix_is_given_whatever_is_asked() -> None:
    model, matrix = Incoherent(2, 2, 0, 1.0), torch.ones(1, 2, 2)
    assert speed.Given(matrix)(model(unknown(model)), model, Streams(0, torch.arange(1))) is matrix
    assert speed.seconds(lambda: None) >= 0
