from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from heads import RandomStates, labelled, low_rank, pair_mlp, tiny
from pairmi.draw import Streams
from pairmi.info import entropy, pair_matrix, pairs
from pairmi.mi.head import LowRankConfig, LowRankHead, gelu, row_chunks
from pairmi.mi.hops import sigmoid
from pairmi.mi.pair_mlp import PairMLPConfig, PairMLPHead
from pairmi.types import PairmiError, PairwiseMI, Prediction

MODEL = tiny()
HEADS = [low_rank(), low_rank(length=0), low_rank(hops=2), pair_mlp()]


def predictions(count: int = 12) -> Prediction:
    tokens = torch.stack([state.tokens for state in RandomStates().draw(MODEL, 0, 0, count)])
    tokens[0], tokens[1] = 4, 0
    tokens[1, 3] = 4  # everything unknown, and one position alone
    return MODEL(tokens)


def ask(head: PairwiseMI, prediction: Prediction) -> torch.Tensor:
    return head(prediction, MODEL, Streams(0, torch.arange(len(prediction.tokens))))


def plain(head: LowRankHead, prediction: Prediction, row: int, i: int, j: int) -> float:
    """The formula of one pair, written out."""
    config, u = head.config, []
    entropies = entropy(prediction.log_probs)[row]
    for place in (i, j):
        normed = functional.layer_norm(prediction.hidden[row, place].view(config.layers, -1), (config.width,)).flatten()
        known = torch.cat([normed, prediction.log_probs[row, place].exp(), entropies[place : place + 1].float()])
        inner = head.inner(known) + (head.position[place] if head.position is not None else 0)
        u.append(head.project(functional.gelu(inner)).view(config.forms, config.rank))
    forms = (u[0] * head.signs * u[1]).sum(1)
    low, high = sorted((float(entropies[i]), float(entropies[j])))
    ways = [head.pair[:, a, b] if config.length else head.pair[:, abs(i - j)] for a, b in ((i, j), (j, i))]
    z = [head.out @ head.mix(torch.cat([forms, place, torch.tensor([low, high])])).relu() for place in ways]
    return 0.5 * float(sum(torch.sigmoid(one + head.bias) for one in z)) * low


@pytest.mark.parametrize("head", HEADS)
def test_heads_give_the_normal_form_without_gradients(head: PairwiseMI) -> None:
    prediction = predictions()
    matrix = ask(head, prediction)
    assert isinstance(head, PairwiseMI)
    assert matrix.shape == (12, 8, 8)
    assert not matrix.requires_grad
    assert matrix.dtype == torch.float64
    assert not matrix.is_inference()
    assert torch.equal(matrix, pair_matrix(matrix, prediction.masked))
    assert matrix[0].max() > 0
    assert matrix[1].max() == 0  # one unknown position has no pairs
    assert ask(head, prediction.rows(torch.arange(0))).shape == (0, 8, 8)


def test_the_information_bound_holds_by_construction() -> None:
    prediction = predictions()
    entropies = entropy(prediction.log_probs)
    most = torch.minimum(entropies[:, :, None], entropies[:, None, :])
    for size in (1.0, 100.0):  # also where the sigmoid is exactly 1
        head = low_rank(hops=1)
        head.out.data.mul_(size)
        head.bias.data.add_(size)
        matrix = ask(head, prediction).double()
        assert (matrix <= most).all()
    assert (matrix[pairs(prediction.masked)] > 0.99 * most[pairs(prediction.masked)]).all()


@pytest.mark.parametrize("changes", [{}, {"length": 0}, {"layers": 2, "width": 8}])
def test_the_low_rank_head_is_its_formula(changes: dict[str, int]) -> None:
    head, prediction = low_rank(**changes), predictions()
    matrix = ask(head, prediction)
    with torch.no_grad():
        for row in range(12):
            where = torch.nonzero(prediction.masked[row])[:, 0].tolist()
            for i in where:
                for j in where:
                    if i != j:
                        assert abs(float(matrix[row, i, j]) - plain(head, prediction, row, i, j)) < 1e-5


def test_the_pair_mlp_is_its_formula() -> None:
    head, prediction = pair_mlp(), predictions()
    raw, hidden = head.estimate(prediction), prediction.hidden
    with torch.no_grad():
        both = [head.network(torch.cat([hidden[0, i], hidden[0, j]])) for i, j in ((2, 5), (5, 2))]
    assert abs(float(raw[0, 2, 5].detach()) - float(sum(both)) / 2) < 1e-5
    assert torch.equal(ask(head, prediction), raw.detach().clamp_min(0).double())


@pytest.mark.parametrize("head", HEADS)
def test_a_rows_bits_do_not_depend_on_its_batch_mates(head: PairwiseMI) -> None:
    prediction = predictions()
    together = ask(head, prediction)
    for row in range(12):
        assert torch.equal(ask(head, prediction.rows(torch.tensor([row])))[0], together[row])


@pytest.mark.parametrize(("length", "hops"), [(40, 0), (0, 0), (40, 2)])
def test_nor_on_the_number_of_threads_and_of_positions_asked_for(length: int, hops: int) -> None:
    rng = torch.Generator().manual_seed(0)
    head = low_rank(length=length, hops=hops, inner=25)  # an odd size: what is left over at the end of a vectorised loop
    masked = torch.rand(60, 40, generator=rng) < torch.rand(60, 1, generator=rng) * 1.3
    masked[0], masked[1] = True, False
    log_probs = torch.randn(60, 40, 4, generator=rng).log_softmax(2)
    hidden, asked = torch.randn(60, 40, 16, generator=rng), torch.rand(60, 40, generator=rng) < 0.5
    threads = torch.get_num_threads()
    for some in (None, asked):
        prediction, found = Prediction(masked.long() * 4, log_probs, hidden, query=some), []
        try:
            for number in (1, 2, 3):
                torch.set_num_threads(number)
                for size in (1, 2, 7, 60):
                    found.append(torch.cat([ask(head, prediction.rows(rows)) for rows in torch.arange(60).split(size)]))
        finally:
            torch.set_num_threads(threads)
        assert all(torch.equal(matrix, found[0]) for matrix in found)
        assert torch.equal(found[0], pair_matrix(found[0], prediction.queried))
        assert (found[0][pairs(prediction.queried)] > 0).all()


def test_rows_are_computed_with_others_of_about_their_size() -> None:
    wanted = torch.arange(40) < torch.tensor([0, 1, 16, 17, 33, 40, 3])[:, None]
    wanted = wanted[:, torch.randperm(40, generator=torch.Generator().manual_seed(0))]
    found = {row: place for rows, where in row_chunks(wanted) for row, place in zip(rows.tolist(), where, strict=False)}
    assert {row: len(place) for row, place in found.items()} == {1: 16, 2: 16, 3: 32, 4: 40, 5: 40, 6: 16}
    for row, place in found.items():
        assert len(place.unique()) == len(place)
        assert wanted[row, place].sum() == wanted[row].sum()
    assert sum(len(rows) for rows, _ in row_chunks(torch.ones(3, 1000, dtype=torch.bool))) == 3  # however long they are
    assert all(len(where) >= min(2, torch.get_num_threads()) for _, where in row_chunks(wanted))


def test_the_functions_that_round_alike_everywhere_are_those_of_torch() -> None:
    x = torch.linspace(-200, 200, 4001, requires_grad=True)
    for ours, theirs in ((gelu, functional.gelu), (sigmoid, torch.sigmoid)):
        torch.testing.assert_close(ours(x), theirs(x))
        torch.testing.assert_close(*(torch.autograd.grad(f(x).sum(), x)[0] for f in (ours, theirs)))


@pytest.mark.parametrize("head", [low_rank(hops=1), pair_mlp()])
def test_gradients_reach_every_parameter(head: LowRankHead | PairMLPHead) -> None:
    prediction = predictions()
    head.estimate(replace(prediction, hidden=prediction.hidden.clone(), log_probs=prediction.log_probs.clone())).square().sum().backward()
    for name, parameter in head.named_parameters():
        assert parameter.grad is not None, name
        assert name == "network.5.bias" or parameter.grad.abs().max() > 0, name


def test_parameter_counts() -> None:
    def count(head: torch.nn.Module) -> int:
        return sum(parameter.numel() for parameter in head.parameters())

    assert count(PairMLPHead(PairMLPConfig(256))) == 99_969  # the paper's
    assert count(LowRankHead(LowRankConfig(128, 9, length=81))) < 50_000 + 4 * 81 * 81  # the latter for the pairs of cells


@pytest.mark.parametrize(("head", "least"), [(low_rank(), 0.95), (pair_mlp(), 0.8)])  # theirs sees no entropies
def test_a_head_learns_a_handful_of_states(head: LowRankHead | PairMLPHead, least: float) -> None:
    labels, _ = labelled(MODEL, 6)
    prediction = MODEL.backbone(labels.tokens)
    within, true = torch.triu(pairs(prediction.masked)), torch.zeros(6, 8, 8)
    upper = torch.triu_indices(8, 8, 1)
    true[:, upper[0], upper[1]] = labels.mi
    optimizer = torch.optim.Adam(head.parameters(), 5e-3)
    for _ in range(80):
        optimizer.zero_grad()
        error = (head.estimate(prediction) - true)[within].square().mean()
        error.backward()
        optimizer.step()
    assert 1 - float(error.detach()) / float(true[within].var()) > least


def test_a_transformer_reports_the_layers_it_is_asked_for() -> None:
    tokens = torch.full((2, 8), 4)
    transformer = MODEL.backbone
    streams = transformer.streams(tokens)
    both = transformer.reporting([0, 2])
    assert torch.equal(both(tokens).hidden, torch.cat([streams[0], streams[2]], 2))
    assert torch.equal(both(tokens).log_probs, transformer(tokens).log_probs)
    assert torch.equal(transformer(tokens).hidden, streams[2])  # the first one is as it was
    assert both.position is transformer.position
    for layers in ([], [3], [-1]):
        with pytest.raises(PairmiError, match=r"Transformer: layers must be one or more of 0..2, got \["):
            transformer.reporting(layers)


def test_foreign_predictions_are_refused() -> None:
    message = (
        "expected {} positions, {} symbols and hidden states of width {}, got 8, 4 and 16; load the head together with its own backbone"
    )
    for head, words in [
        (low_rank(width=8), (8, 4, 8)),
        (low_rank(symbols=5), (8, 5, 16)),
        (low_rank(length=9), (9, 4, 16)),
        (pair_mlp(width=32), ("any number of", "any number of", 32)),
    ]:
        with pytest.raises(PairmiError, match=f"{type(head).__name__}: {message.format(*words)}"):
            ask(head, predictions())


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(
        PairmiError,
        match=r"LowRankConfig: sizes must be >= 1 \(symbols, length, relations, hops and reaches >= 0\), got LowRankConfig\(width=16, symb",
    ):
        LowRankConfig(16, 4, rank=0)
    with pytest.raises(PairmiError, match="PairMLPConfig: sizes must be >= 1, got PairMLPConfig"):
        PairMLPConfig(0)
