import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import TypeCheckError
from scipy import special, stats

from pairmi.info import apc, confidence, entropy, kl, margin, pair_matrix, pairs, total_variation
from worlds import generator, many


def distributions(seed: int, size: int, rows: int = 3) -> torch.Tensor:
    """Random log-probabilities, with impossible symbols in the first row."""
    logits = 3 * torch.randn(rows, size, generator=generator(seed), dtype=torch.float64)
    logits[0, 1:] = torch.where(torch.rand(size - 1, generator=generator(seed + 1)) < 0.5, -math.inf, logits[0, 1:])
    return logits.log_softmax(-1)


@many(100)
@given(st.integers(0, 2**32), st.integers(1, 9))
def test_entropy_divergence_and_distance_are_those_of_scipy(seed: int, size: int) -> None:
    log_p, log_q = distributions(seed, size), distributions(seed + 2, size)
    p, q = log_p.exp().numpy(), log_q.exp().numpy()
    np.testing.assert_allclose(entropy(log_p), stats.entropy(p, axis=1), atol=1e-12)
    np.testing.assert_allclose(kl(log_p, log_q), special.rel_entr(p, q).sum(1), atol=1e-12)
    np.testing.assert_allclose(total_variation(log_p, log_q), np.abs(p - q).sum(1) / 2, atol=1e-12)


def test_zero_log_zero_is_zero_and_the_impossible_costs_infinitely_much() -> None:
    certain = torch.tensor([1.0, 0, 0]).log()
    even = torch.tensor([0.5, 0.5, 0]).log()
    assert entropy(certain) == 0
    assert kl(certain, even) == pytest.approx(math.log(2))
    assert kl(even, certain) == math.inf
    assert kl(even, even) == 0
    assert total_variation(even, certain) == 0.5


def test_reductions_are_in_float64_also_for_float32_input() -> None:
    log_probs = torch.randn(2, 5, generator=generator(0)).log_softmax(-1)
    assert all(reduction(log_probs).dtype == torch.float64 for reduction in (entropy, confidence, margin))
    assert all(reduction(log_probs, log_probs).dtype == torch.float64 for reduction in (kl, total_variation))
    assert (kl(log_probs, log_probs) == 0).all()


@pytest.mark.parametrize(("probs", "best", "lead"), [([0.2, 0.7, 0.1], 0.7, 0.5), ([0.5, 0.5], 0.5, 0), ([1, 0, 0], 1, 1), ([1], 1, 1)])
def test_confidence_and_margin(probs: list[float], best: float, lead: float) -> None:
    log_probs = torch.tensor([probs], dtype=torch.float64).log()
    assert confidence(log_probs).item() == pytest.approx(best)
    assert margin(log_probs).item() == pytest.approx(lead)


def test_pairs_are_two_different_masked_positions() -> None:
    masked = torch.tensor([[True, False, True], [False, False, True]])
    expected = [[[i != j and bool(row[i]) and bool(row[j]) for j in range(3)] for i in range(3)] for row in masked]
    assert pairs(masked).tolist() == expected


@many(50)
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_normal_form_of_a_pair_matrix(seed: int, length: int) -> None:
    raw = torch.randn(2, length, length, generator=generator(seed))
    masked = torch.rand(2, length, generator=generator(seed + 1)) < 0.7
    matrix = pair_matrix(raw, masked)
    assert (matrix >= 0).all()
    assert torch.equal(matrix, matrix.transpose(1, 2))
    assert (matrix[~pairs(masked)] == 0).all()
    expected = (0.5 * (raw + raw.transpose(1, 2))).clamp_min(0)
    assert torch.equal(matrix[pairs(masked)], expected[pairs(masked)])
    assert torch.equal(pair_matrix(matrix, masked), matrix)


def test_shapes_and_types_are_checked_while_the_tests_run() -> None:
    with pytest.raises(TypeCheckError, match="log_probs"):
        entropy(torch.ones(2, 3, dtype=torch.long))
    with pytest.raises(TypeCheckError, match="log_q"):
        kl(torch.zeros(2, 3), torch.zeros(2, 4))


def test_the_checks_can_be_switched_off(unchecked: None) -> None:
    assert entropy(torch.zeros(2, 1, dtype=torch.long)).tolist() == [0, 0]


def test_apc_removes_what_each_position_has_in_common_with_all() -> None:
    rng = np.random.default_rng(0)
    strength = rng.random(30) + 0.5
    product = torch.from_numpy(np.outer(strength, strength) * (1 - np.eye(30)))
    assert apc(product).abs().max() < 0.12 * product.max()
    planted = product.clone()
    planted[3, 20] = planted[20, 3] = planted[3, 20] + 1
    corrected = apc(planted)
    assert divmod(int(corrected.argmax()), 30) == (3, 20)
    assert not corrected.diag().any()
    assert not apc(torch.zeros(4, 4)).any()


def test_apc_by_its_definition() -> None:
    rng = np.random.default_rng(1)
    scores = rng.random((5, 5))
    scores = (scores + scores.T) * (1 - np.eye(5))
    expected = np.zeros((5, 5))
    mean = [sum(scores[i, j] for j in range(5) if j != i) / 4 for i in range(5)]
    for i in range(5):
        for j in range(5):
            if i != j:
                expected[i, j] = scores[i, j] - mean[i] * mean[j] / (sum(mean) / 5)
    np.testing.assert_allclose(apc(torch.from_numpy(scores)), expected)


def test_what_is_ruled_out_is_infinite_at_any_vocabulary_and_in_any_batch() -> None:
    some = torch.zeros(1, 2000).log_softmax(-1)
    without = some.index_fill(1, torch.tensor([0]), -torch.inf).log_softmax(-1)
    other = some.index_fill(1, torch.tensor([5]), -torch.inf).log_softmax(-1)
    rare = some.index_fill(1, torch.tensor([0]), -75.0).log_softmax(-1)
    assert kl(some, without) == torch.inf
    assert kl(rare, without) == torch.inf
    assert kl(torch.cat([some, other, rare, without]), torch.cat([without, other, without, without])).tolist() == [
        torch.inf,
        0,
        torch.inf,
        0,
    ]
    assert torch.equal(kl(torch.cat([other, other]), torch.cat([some, other]))[:1], kl(other, some))
