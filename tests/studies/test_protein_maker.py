import pytest
import torch

from pairmi.bench.generation import fill
from pairmi.bench.ledger import Ledger
from pairmi.commit import Sampling
from pairmi.loading import load
from pairmi.model import Model
from proteins import opinionated_weights
from studies.protein_maker import Maker, pseudo_perplexity


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return load(opinionated_weights(tmp_path_factory.mktemp("weights") / "p.safetensors"))


def test_recovery_is_the_share_of_hidden_residues_that_come_back(model: Model) -> None:
    maker = Maker(model, Ledger())
    texts = ["MKVLAAGT", "ACDEFGHIKL"]
    found = maker.recover("sequential", texts)
    assert 0 <= found <= 1
    assert found * 9 == pytest.approx(round(found * 9))  # 4 and 5 residues are hidden
    own = fill(model, [torch.full((8,), 20)], "sequential", Sampling(greedy=True), 1).texts
    assert maker.recover("sequential", own) >= maker.recover("sequential", ["".join(reversed(own[0]))])


def test_perplexity_is_the_mean_over_sequences(model: Model) -> None:
    texts = ["MKVLA", "ACDEFG"]
    expected = sum(pseudo_perplexity(model, text) for text in texts) / 2
    assert Maker(model, Ledger()).perplexity(texts) == pytest.approx(expected)
