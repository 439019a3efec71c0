from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pairmi.draw import Streams
from pairmi.info import entropy, pairs
from pairmi.mi.probe import Probe
from pairmi.mi.proxies import Attended, RandomMI, Shuffled, Structural
from pairmi.tasks.tables import sudoku4
from pairmi.types import Backbone, PairMatrix, PairmiError, PairwiseMI, Prediction, RowStreams
from worlds import Incoherent, Recipe, generator, many, recipes, tabular, unknown


@dataclass(frozen=True)
class Numbered:
    """A different value for every pair of masked positions."""

    def __call__(self, prediction: Prediction, backbone: Backbone, rng: RowStreams) -> PairMatrix:
        length = prediction.tokens.shape[1]
        numbers = torch.arange(length, dtype=torch.float64)
        values = 1 + torch.maximum(numbers[:, None], numbers) * length + torch.minimum(numbers[:, None], numbers)
        return torch.where(pairs(prediction.masked), values, 0)


def asked(model: Backbone, tokens: torch.Tensor, seed: int = 0) -> tuple[Prediction, Backbone, Streams]:
    """What an estimate is called with, by a backbone that attends at random."""
    prediction = model(tokens)
    attention = torch.rand(*tokens.shape, tokens.shape[1], generator=generator(seed)).softmax(-1)
    return replace(prediction, attention=attention), model, Streams(seed, torch.arange(len(tokens)))


def estimates(length: int, seed: int) -> list[PairwiseMI]:
    graph = torch.randn(length, length, generator=generator(seed))  # neither symmetric nor positive
    return [RandomMI(), Shuffled(Probe()), Shuffled(Numbered()), Structural(graph), Attended()]


@many(150)
@given(recipes(longest=5))
def test_every_proxy_gives_the_normal_form(recipe: Recipe) -> None:
    model, tokens = recipe.incoherent()
    call = asked(model, tokens, recipe.seed)
    for estimate in estimates(recipe.length, recipe.seed):
        assert isinstance(estimate, PairwiseMI)
        matrix = estimate(*call)
        assert (matrix >= 0).all()
        assert torch.equal(matrix, matrix.transpose(1, 2))
        assert (matrix[~pairs(tokens == recipe.size)] == 0).all()


@many(50)
@given(recipes(), st.integers(0, 3))
def test_no_proxy_looks_at_batch_mates(recipe: Recipe, row: int) -> None:
    model, tokens = recipe.incoherent()
    prediction, _, streams = asked(model, tokens)
    keep = torch.tensor([row])
    for estimate in estimates(recipe.length, recipe.seed):
        together = estimate(prediction, model, streams)[keep]
        torch.testing.assert_close(estimate(prediction.rows(keep), model, streams.rows(keep)), together, atol=1e-12, rtol=0)


@many(100)
@given(recipes(longest=6))
def test_shuffling_keeps_the_values_and_moves_whole_positions(recipe: Recipe) -> None:
    call = asked(*recipe.incoherent(), recipe.seed)
    masked = call[0].masked
    before, after = Numbered()(*call), Shuffled(Numbered())(*call)
    for row in range(len(masked)):
        within = pairs(masked)[row]
        assert sorted(after[row][within].tolist()) == sorted(before[row][within].tolist())
        rows_before = {tuple(sorted(line)) for line in before[row][masked[row]].tolist()}
        rows_after = {tuple(sorted(line)) for line in after[row][masked[row]].tolist()}
        assert rows_after == rows_before  # what one position shares with the others stays together


def test_shuffling_really_moves_and_anew_in_each_turn_and_row() -> None:
    prediction, model, streams = asked(Incoherent(12, 3, seed=0, sharpness=1.0), torch.full((4, 12), 3))
    plain = Numbered()(prediction, model, streams)
    shuffled = [Shuffled(Numbered())(prediction, model, streams.at(turn)) for turn in range(3)]
    different = torch.cat([plain[:1], *shuffled]).flatten(1).unique(dim=0)
    assert len(different) == 1 + 3 * 4
    assert torch.equal(Shuffled(Numbered())(prediction, model, streams), shuffled[0])


def test_every_permutation_of_the_masked_positions_is_as_likely() -> None:
    call = asked(Incoherent(5, 3, seed=0, sharpness=1.0), torch.tensor([[3, 0, 3, 1, 3]]).expand(1200, -1))
    shuffled = Shuffled(Numbered())(*call)
    _, counts = shuffled.flatten(1).unique(dim=0, return_counts=True)
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > 1e-3


def test_random_is_a_share_of_the_smaller_entropy_and_new_in_each_turn() -> None:
    prediction, model, streams = asked(Incoherent(6, 3, seed=0, sharpness=1.0), torch.full((50, 6), 3))
    entropies = entropy(prediction.log_probs)
    most = torch.minimum(entropies[:, :, None], entropies[:, None, :])
    matrix, next_one = (RandomMI()(prediction, model, streams.at(turn)) for turn in (0, 1))
    within = pairs(prediction.masked)
    assert (matrix <= most).all()
    assert (matrix / most)[within].mean().item() == pytest.approx(0.5, abs=0.02)
    assert not (matrix[within] == next_one[within]).any()


def test_structural_and_attended_weigh_the_smaller_entropy() -> None:
    prediction, model, streams = asked(Incoherent(3, 3, seed=0, sharpness=1.0), torch.full((2, 3), 3))
    entropies = entropy(prediction.log_probs)
    graph = torch.tensor([[0.0, 1, 0], [1, 0, 0], [0, 0, 0]])
    linked = Structural(graph)(prediction, model, streams)
    torch.testing.assert_close(linked[:, 0, 1], torch.minimum(entropies[:, 0], entropies[:, 1]))
    assert (linked[:, 2] == 0).all()
    attended = Attended()(prediction, model, streams)
    mean = 0.5 * (prediction.attention[:, 1, 2] + prediction.attention[:, 2, 1]).double()
    torch.testing.assert_close(attended[:, 1, 2], mean * torch.minimum(entropies[:, 1], entropies[:, 2]))


def test_structural_refuses_a_graph_of_another_size() -> None:
    table = tabular(sudoku4())
    with pytest.raises(PairmiError, match="Structural: the graph has 9 positions, the canvas 16"):
        Structural(torch.ones(9, 9))(*asked(table, unknown(table)))


def test_attended_refuses_a_backbone_without_attention() -> None:
    table = tabular(sudoku4())
    with pytest.raises(PairmiError, match="Attended: the backbone reports no attention; load it with attention=True, or choose another mi"):
        Attended()(table(unknown(table)), table, Streams(0, torch.arange(1)))
