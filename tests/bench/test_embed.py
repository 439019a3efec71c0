from collections import Counter

import numpy as np
import pytest
import torch

from pairmi.bench.protein import embed, lengths_like
from pairmi.decoding import batches
from pairmi.types import Prediction, Tokens, Vocab
from studies.protein_corpus import masked_perplexity
from studies.protein_maker import pseudo_perplexity

P = torch.tensor([0.5, 0.3, 0.2])


class Frequencies:
    """The same beliefs everywhere; hidden states are the symbols themselves. It counts what it sees."""

    vocab, length = Vocab(("a", "b", "c")), None

    def __init__(self) -> None:
        self.seen: list[Tokens] = []

    def __call__(self, tokens: Tokens) -> Prediction:
        self.seen.append(tokens)
        return Prediction(tokens, P.log().expand(*tokens.shape, 3), torch.eye(4)[tokens])


def test_an_embedding_is_the_mean_over_positions_in_the_order_of_the_texts() -> None:
    found = embed(Frequencies(), ["aab", "c", "abb", "bbbb"], batch=2)
    np.testing.assert_allclose(found[:, :3], [[2 / 3, 1 / 3, 0], [0, 0, 1], [1 / 3, 2 / 3, 0], [0, 1, 0]], atol=1e-7)


def test_sequences_are_taken_together_by_length() -> None:
    sequences = [torch.zeros(length, dtype=torch.long) for length in (5, 3, 5, 5, 3, 9)]
    assert list(batches(sequences, 2)) == [[1, 4], [0, 2], [3], [5]]
    assert list(batches(sequences, 9)) == [[1, 4], [0, 2, 3], [5]]
    assert list(batches([], 2)) == []


def test_lengths_have_the_distribution_of_the_reference() -> None:
    reference = [50] * 6 + [70] * 3 + [100]
    assert Counter(lengths_like(reference, 10)) == {50: 6, 70: 3, 100: 1}
    assert Counter(lengths_like(reference, 100)) == {50: 60, 70: 30, 100: 10}
    assert set(lengths_like(range(108, 126), 500)) == set(range(108, 126))


def test_pseudo_perplexity_hides_each_position_once() -> None:
    model = Frequencies()
    assert pseudo_perplexity(model, "aabc", batch=3) == pytest.approx((0.5 * 0.5 * 0.3 * 0.2) ** -0.25, rel=1e-6)
    rows = torch.cat(model.seen)
    assert torch.equal((rows == 3).nonzero()[:, 1], torch.arange(4))


@pytest.mark.parametrize("level", [0.1, 0.5, 1.0])
def test_masked_perplexity_counts_the_masked_share_only(level: float) -> None:
    model = Frequencies()
    assert masked_perplexity(model, ["aaaa", "aaaaaaaaaa"], level) == pytest.approx(2, rel=1e-6)
    assert [(tokens == 3).sum().item() for tokens in model.seen] == [max(1, round(level * n)) for n in (4, 10)]
