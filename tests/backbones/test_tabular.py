import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pairmi.backbones.tabular import Tabular
from pairmi.info import pairs
from pairmi.tasks.tables import InWorld, independent, parity, permutations, sudoku4
from pairmi.types import Backbone, PairmiError
from worlds import Recipe, generator, many, recipes, tabular, total_correlation, unknown

TWO = torch.tensor([[0, 1], [1, 0]])
EVEN = torch.tensor([0.5, 0.5])


def completions(table: Tabular, context: list[int]) -> dict[tuple[int, ...], float]:
    """The plain version: every sequence that fits, with its probability."""
    fits = {
        tuple(sequence): weight
        for sequence, weight in zip(table.support.tolist(), table.weights.tolist(), strict=True)
        if weight > 0 and all(known in (symbol, table.vocab.size) for known, symbol in zip(context, sequence, strict=True))
    }
    return {sequence: weight / sum(fits.values()) for sequence, weight in fits.items()}


def marginal(joint: dict[tuple[int, ...], float], positions: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    out: dict[tuple[int, ...], float] = {}
    for sequence, weight in joint.items():
        key = tuple(sequence[i] for i in positions)
        out[key] = out.get(key, 0) + weight
    return out


def surprise(probs: dict[tuple[int, ...], float]) -> float:
    return -sum(p * math.log(p) for p in probs.values() if p > 0)


@many(200)
@given(recipes())
def test_conditionals_are_those_of_brute_force(recipe: Recipe) -> None:
    table, tokens = recipe.coherent()
    probs = table(tokens).log_probs.exp()
    for row, context in enumerate(tokens.tolist()):
        joint = completions(table, context)
        for i, v in itertools.product(range(recipe.length), range(recipe.size)):
            expected = marginal(joint, (i,)).get((v,), 0) if joint else 1 / recipe.size
            assert probs[row, i, v].item() == pytest.approx(expected, abs=1e-12)
        assert bool(table.consistent(tokens)[row].any()) == bool(joint)
        assert int(table.consistent(tokens)[row].sum()) == len(joint)
        assert table.posterior(tokens)[row].sum().item() == pytest.approx(float(bool(joint)))


@many(200)
@given(recipes(), st.integers(0, 2**32))
def test_mutual_information_and_total_correlation_are_those_of_brute_force(recipe: Recipe, seed: int) -> None:
    table, tokens = recipe.coherent()
    chosen = torch.rand(tokens.shape, generator=generator(seed)) < 0.6
    mi, total = table.mutual_information(tokens), total_correlation(table, tokens, chosen)
    masked = tokens == recipe.size
    assert (mi[~pairs(masked)] == 0).all()
    for row, context in enumerate(tokens.tolist()):
        joint = completions(table, context)
        single = [surprise(marginal(joint, (i,))) for i in range(recipe.length)]
        for i, j in torch.nonzero(pairs(masked)[row]).tolist():
            assert mi[row, i, j].item() == pytest.approx(single[i] + single[j] - surprise(marginal(joint, (i, j))), abs=1e-9)
        members = tuple(torch.nonzero(chosen[row]).flatten().tolist())
        assert total[row].item() == pytest.approx(sum(single[i] for i in members) - surprise(marginal(joint, members)), abs=1e-9)


def test_xor_is_independent_in_pairs_and_not_as_a_whole() -> None:
    table = tabular(parity(3))
    tokens = unknown(table)
    assert table.mutual_information(tokens).abs().max() < 1e-12
    assert total_correlation(table, tokens, torch.ones(1, 3, dtype=torch.bool)).item() == pytest.approx(math.log(2))
    assert total_correlation(table, tokens, torch.tensor([[True, True, False]])).item() == pytest.approx(0)
    given_one = torch.tensor([[0, 2, 2]])
    assert table.mutual_information(given_one)[0, 1, 2].item() == pytest.approx(math.log(2))


def test_independent_positions_share_nothing() -> None:
    table = tabular(independent(4, 3))
    assert table.mutual_information(unknown(table)).abs().max() < 1e-12
    assert total_correlation(table, unknown(table), torch.ones(1, 4, dtype=torch.bool)).item() == pytest.approx(0)


def test_two_of_a_permutation_share_what_one_rules_out() -> None:
    table = tabular(permutations(4))
    off_diagonal = table.mutual_information(unknown(table))[0][~torch.eye(4, dtype=torch.bool)]
    torch.testing.assert_close(off_diagonal, torch.full((12,), math.log(4 / 3), dtype=torch.float64))


def test_pair_marginals_have_the_marginals_on_both_sides() -> None:
    table, tokens = Recipe(4, 3, 0.3, 2.0, seed=1).coherent()
    probs = table(tokens[:3]).log_probs.exp()
    joint = table.pair_marginals(tokens[:3])
    torch.testing.assert_close(joint.sum(4), probs[..., None].expand(-1, -1, -1, 4))
    torch.testing.assert_close(joint, joint.permute(0, 3, 4, 1, 2))


def test_a_contradictory_context_is_uniform_and_nothing_is_lost_in_it() -> None:
    table = tabular(sudoku4())
    canvas = unknown(table)
    canvas[0, :2] = 0  # the same digit twice in a row
    torch.testing.assert_close(table(canvas).log_probs.exp(), torch.full((1, 16, 4), 0.25, dtype=torch.float64))
    assert (table.mutual_information(canvas) == 0).all()
    assert total_correlation(table, canvas, canvas == 4).item() == 0
    task = InWorld(sudoku4())
    assert task.conflict(canvas[0]) == "no sequence of this world fits the given positions"
    assert task.conflict(unknown(table)[0]) is None


def test_nothing_chosen_is_nothing_lost() -> None:
    table = tabular(parity(3))
    assert total_correlation(table, unknown(table), torch.zeros(1, 3, dtype=torch.bool)).item() == 0


def test_weights_need_no_norm_and_zero_weight_is_impossible() -> None:
    table = Tabular(torch.tensor([[0, 0], [0, 1], [1, 1]]), torch.tensor([3.0, 1.0, 0.0]), ("a", "b"))
    torch.testing.assert_close(table(unknown(table)).log_probs.exp()[0], torch.tensor([[1, 0], [0.75, 0.25]], dtype=torch.float64))
    assert not table.consistent(torch.tensor([[1, 2]])).any()


def test_is_a_backbone() -> None:
    table = Tabular(TWO, EVEN, ("a", "b"))
    assert isinstance(table, Backbone)
    assert (table.length, table.vocab.size) == (2, 2)


@pytest.mark.parametrize(
    ("support", "weights", "message"),
    [
        (TWO[:0], EVEN[:0], r"support must hold sequences over 0..1, got \[0, 2\] tokens"),
        (TWO + 1, EVEN, r"support must hold sequences over 0..1, got \[2, 2\] tokens"),
        (TWO - 1, EVEN, r"support must hold sequences over 0..1, got \[2, 2\] tokens"),
        (TWO[[0, 0]], EVEN, "each sequence once; add the weights of equal ones up"),
        (TWO, torch.tensor([1, math.inf]), "weights must be finite, not negative and not all zero"),
        (TWO, torch.tensor([1, math.nan]), "weights must be finite, not negative and not all zero"),
        (TWO, torch.tensor([1.0, -0.5]), "weights must be finite, not negative and not all zero"),
        (TWO, torch.tensor([0.0, 0.0]), "weights must be finite, not negative and not all zero"),
    ],
)
def test_refuses_what_is_no_distribution(support: torch.Tensor, weights: torch.Tensor, message: str) -> None:
    with pytest.raises(PairmiError, match=f"^Tabular: .*{message}"):
        Tabular(support, weights, ("a", "b"))


def test_refuses_canvases_of_another_length() -> None:
    with pytest.raises(PairmiError, match="Tabular: expected canvases of 2 positions, got 3"):
        Tabular(TWO, EVEN, ("a", "b"))(torch.full((1, 3), 2))
