"""Decoding block by block: windows are conditional models, and the loop over them loses nothing but what lies outside."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from scipy.stats import chisquare

import pairmi
from foreign import made
from heads import low_rank
from pairmi.backbones.masked_lm import MaskedLM
from pairmi.backbones.transformer import TransformerConfig
from pairmi.bench.exact import evaluate
from pairmi.blocks import Window, leftmost, predict_at
from pairmi.commit import Sampling
from pairmi.counting import Counting
from pairmi.decoding import iter_decode
from pairmi.draw import Streams
from pairmi.mi.proxies import Structural
from pairmi.model import Model
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.selectors.top_k import TopK
from pairmi.selectors.wrappers import InBlocks
from pairmi.spec import rule
from pairmi.tasks.tables import random_table
from pairmi.types import PairmiError, Prediction, Reason, Selection, Tokens, Turn
from rules import opinionated, reckless
from worlds import Incoherent, Listening, Recipe, decode, generator, many, recipes, tabular, unknown

SMALL = tabular(random_table(4, 3, generator(5), sparsity=0.5, sharpness=1.0))
MODEL = opinionated(TransformerConfig(symbols="abcde", length=12, width=16, depth=2, heads=2))
ROWS = 3000


def canvases(rows: int, masked: float = 0.7) -> Tokens:
    rng = generator(rows)
    return torch.where(torch.rand(rows, 12, generator=rng) < masked, 5, torch.randint(5, (rows, 12), generator=rng))


@given(recipes(longest=6))
@many(200)
def test_a_window_holds_the_first_unknown_positions(recipe: Recipe) -> None:
    tokens = recipe.contexts(torch.zeros(1, recipe.length, dtype=torch.long))
    for size in range(1, recipe.length + 2):
        places = leftmost(tokens, recipe.size, size)
        assert places.shape == (4, min(size, recipe.length))
        for row, where in zip(tokens.tolist(), places.tolist(), strict=True):
            open_ones = [i for i, token in enumerate(row) if token == recipe.size]
            assert where == sorted(set(where))
            assert [i for i in where if i in open_ones] == open_ones[:size]


@given(recipes())
@many(100)
def test_a_window_predicts_what_the_whole_predicts(recipe: Recipe) -> None:
    world, tokens = recipe.incoherent()
    places = leftmost(tokens, recipe.size, 2)
    window = Window(world, tokens, places)
    owner = torch.tensor([3, 0, 3])
    changed = torch.randint(recipe.size, (3, places.shape[1]), generator=generator(1))
    whole = tokens[owner].scatter(1, places[owner], changed)
    prediction = window.within(changed, owner)
    assert torch.equal(prediction.log_probs, world(whole).log_probs.gather(1, places[owner][:, :, None].expand(-1, -1, recipe.size)))
    assert torch.equal(prediction.places, places[owner])
    assert torch.equal(window(window.tokens).tokens, tokens.gather(1, places))


def test_rows_of_a_window_have_owners() -> None:
    window = Window(SMALL, unknown(SMALL, 3), leftmost(unknown(SMALL, 3), 3, 2))
    with pytest.raises(PairmiError, match=r"Window: 2 rows for 3 canvases; say whose each is"):
        window(window.tokens[:2])
    meter = Counting(window)
    meter.keep(torch.tensor([0, 2]))
    assert len(meter(window.tokens[:2]).tokens) == 2
    with pytest.raises(PairmiError, match="3 rows for a batch of 2: say in `owner` for which canvas each is evaluated"):
        meter(window.tokens)


def test_pieces_of_a_pass_keep_their_contexts() -> None:
    tokens = torch.tensor([[0, 3, 3, 3], [1, 3, 3, 3], [2, 3, 3, 3]])
    window = Window(Incoherent(4, 3, 0, 2.0), tokens, leftmost(tokens, 3, 2))
    whole = window(window.tokens).log_probs
    meter = Counting(window, piece=2)
    assert torch.equal(meter(window.tokens).log_probs, whole)
    for where, prediction in meter.pieces(window.tokens[[2, 1]], 1, torch.tensor([2, 1])):
        assert torch.equal(prediction.log_probs, whole[[2, 1]][where])


@pytest.mark.parametrize("verify", [False, True])
def test_blocks_are_filled_one_after_another(verify: bool) -> None:
    """Two at a time in blocks of two: each pair from the product of its marginals, given the pair before; verified, from the joint."""
    selector = rule("top-k:k=2,block=2", Model(SMALL))
    out = decode(SMALL, unknown(SMALL, ROWS), selector, Sampling(seed=3, verify=verify), batch_size=ROWS)
    joint = torch.zeros(3, 3, 3, 3, dtype=torch.float64)
    joint[tuple(SMALL.support.T)] = SMALL.weights.double()
    pair = joint.sum((2, 3))
    rest = joint / pair[:, :, None, None].clamp_min(1e-12)
    product = rest.sum(3)[:, :, :, None] * rest.sum(2)[:, :, None, :] * (pair.sum(1)[:, None] * pair.sum(0))[:, :, None, None]
    if not verify:  # after a first pair that cannot be, the table is uniform: look at the pairs that can
        possible = out.tokens[pair[out.tokens[:, 0], out.tokens[:, 1]] > 0]
        expected = product / product.sum()
    else:
        possible, expected = out.tokens, joint
    seen = torch.zeros_like(joint).index_put(tuple(possible.T), torch.ones(len(possible), dtype=torch.float64), accumulate=True)
    assert (seen[expected < 1e-12] == 0).all()
    likely = expected * len(possible) >= 5
    assert likely.sum() > 5
    observed = torch.cat([seen[likely], seen[~likely].sum()[None]])
    wanted = torch.cat([expected[likely], expected[~likely].sum()[None]]) * len(possible)
    keep = wanted > 0
    assert chisquare(observed[keep].numpy(), wanted[keep].numpy()).pvalue > 1e-3


def test_the_price_of_blocks_is_what_their_members_share() -> None:
    """All at once in blocks of two: I(0; 1) + I(2; 3 | 0, 1)."""
    joint = torch.zeros(3, 3, 3, 3, dtype=torch.float64)
    joint[tuple(SMALL.support.T)] = SMALL.weights.double()

    def entropy(*kept: int) -> float:
        return float(torch.special.entr(joint.sum([i for i in range(4) if i not in kept]) if len(kept) < 4 else joint).sum())

    exact = entropy(0) + entropy(1) - entropy(0, 1) + entropy(0, 1, 2) + entropy(0, 1, 3) - entropy(0, 1) - entropy(0, 1, 2, 3)
    whole, parts, singly = pairmi.price(Model(SMALL), "....", ["top-k:k=4", "top-k:k=4,block=2", "top-k:k=4,block=1"], sequences=4000)
    assert parts.interval[0] < exact < parts.interval[1]
    assert abs(parts.nats - exact) < 0.05 * exact
    assert whole.nats > 1.2 * exact  # all four share more
    assert (parts.passes, singly.passes, singly.nats, parts.rows) == (2, 4, 0, 4)
    assert parts.by_pass == pytest.approx([entropy(0) + entropy(1) - entropy(0, 1), exact - parts.by_pass[0]], rel=0.1)
    assert sum(parts.by_position) == pytest.approx(parts.nats)
    assert parts.by_position[0] + parts.by_position[1] == pytest.approx(parts.by_pass[0])


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_price_of_blocks_is_the_same_in_every_batch(name: str) -> None:
    spec = reckless(name)
    spec = f"{spec}{',' if ':' in spec else ':'}block="
    given = list(canvases(9))
    whole = pairmi.price(MODEL, given, f"{spec}3", sequences=9)
    part = pairmi.price(MODEL, given, f"{spec}3", sequences=9, batch_size=2)
    assert torch.equal(part.each, whole.each)
    assert torch.equal(part.each_passes, whole.each_passes)
    assert part.probe_rows == whole.probe_rows
    assert torch.equal(whole.unknown, torch.stack(given).eq(5).sum(1).double())
    assert torch.equal(pairmi.price(MODEL, given, f"{spec}12", sequences=9).each, pairmi.price(MODEL, given, spec[:-7], sequences=9).each)


def test_ways_of_drawing_in_blocks_are_priced_in_one_walk() -> None:
    rules = ["top-k:k=2,block=2", "top-k:k=2,block=2,draw=probed", "top-k:k=2,draw=probed"]
    plain, probed, whole = pairmi.price(Model(SMALL), "....", rules, sequences=64)
    assert torch.equal(plain.each_passes, probed.each_passes)
    assert probed.nats < 1e-9 < plain.nats  # exact tables of a pair leave nothing
    assert whole.probe_rows > 0


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("verify", [False, True])
def test_a_canvas_becomes_the_same_in_every_batch(name: str, verify: bool) -> None:
    spec = reckless(name)
    selector = rule(f"{spec}{',' if ':' in spec else ':'}block=3", MODEL)
    given = canvases(9)
    whole = decode(MODEL, given, selector, Sampling(seed=1, verify=verify))
    for size in (1, 4):
        part = decode(MODEL, given, selector, Sampling(seed=1, verify=verify), batch_size=size)
        for field in ("tokens", "passes", "rows", "probe_rows"):
            assert torch.equal(getattr(part, field), getattr(whole, field)), field
    assert (whole.tokens < 5).all()
    assert torch.equal(whole.tokens[given < 5], given[given < 5])


def test_steps_tell_of_whole_canvases() -> None:
    given = canvases(4)
    before, seen = given.clone(), torch.zeros(4, dtype=torch.long)
    for step in iter_decode(MODEL, given, rule("top-k:k=2,block=3", MODEL), Sampling(1)):
        changed = step.tokens != before[step.rows]
        assert torch.equal(changed, step.committed)
        rank = (given[step.rows] == 5).long().cumsum(1)
        first = torch.where(before[step.rows] == 5, (rank - 1) // 3, 99).amin(1, keepdim=True)
        later = (step.tokens == 5) & ((rank - 1) // 3 > first)
        assert torch.equal(step.waiting.reason == Reason.LATER, later)
        assert (step.waiting.reason[step.committed] == Reason.FILLED).all()
        assert (step.passes > seen[step.rows]).all()
        seen[step.rows], before[step.rows] = step.passes, step.tokens
    assert (before < 5).all()


def test_only_the_block_is_looked_at() -> None:
    heard = Listening(MODEL)
    out = decode(heard, canvases(2, 1.0), rule("mi-bound:mi=probe,floor=0,budget=0,block=2", MODEL), Sampling(1))
    assert out.passes.tolist() == [12, 12]
    assert out.probe_rows.tolist() == [6 * (2 * 5 + 5)] * 2  # two unknown positions, then one


class Recorder:
    """Takes everything, and writes down the random numbers that it was offered."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def __call__(self, turn: Turn) -> Selection:
        self.seen += turn.rng.uniform("order", 1).flatten().tolist()
        return TopK(1)(turn)


def test_no_number_is_used_twice() -> None:
    recorder = Recorder()
    list(iter_decode(MODEL, canvases(3, 1.0), InBlocks(recorder, 4), Sampling(1)))
    assert len(recorder.seen) == 36
    assert len(set(recorder.seen)) == 36


def test_mutual_information_of_the_first_block() -> None:
    canvas = torch.tensor([5, 0, 5, 1, 5, 5, 2, 5, 3, 5, 5, 5])
    whole = pairmi.mutual_information(MODEL, canvas, floor=0.0)
    part = pairmi.mutual_information(MODEL, canvas, floor=0.0, block=3)
    assert part.positions == (0, 2, 4)
    torch.testing.assert_close(part.matrix, whole.matrix[[0, 2, 4]][:, [0, 2, 4]], atol=1e-6, rtol=1e-5)
    assert part.rows == 1 + 3 * 5
    assert {pair[:2] for pair in part.strongest()} == {(0, 2), (0, 4), (2, 4)}
    assert [one.positions for one in pairmi.mutual_information(MODEL, [canvas, canvas.flip(0)], block=2)] == [(0, 2), (0, 1)]


@pytest.mark.parametrize("length", [0, 12])
def test_a_head_knows_where_the_window_stands(length: int) -> None:
    """By distance, or by learned places: the pairs of a window are those of the whole canvas."""
    tokens = canvases(3)
    head, streams = low_rank(symbols=5, length=length), Streams(0, torch.arange(3))
    whole, places = Counting(MODEL)(tokens), leftmost(tokens, 5, 4)
    window = Counting(Window(MODEL, tokens, places))
    within = head(window(tokens.gather(1, places)), window, streams)
    every = torch.arange(3)[:, None, None]
    torch.testing.assert_close(
        within, head(whole, Counting(MODEL), streams)[every, places[:, :, None], places[:, None]], atol=1e-6, rtol=1e-5
    )


def test_a_graph_knows_where_the_window_stands() -> None:
    tokens = canvases(3)
    graph, streams = torch.rand(12, 12, generator=generator(0)).round(), Streams(0, torch.arange(3))
    places = leftmost(tokens, 5, 4)
    window = Counting(Window(MODEL, tokens, places))
    within = Structural(graph)(window(tokens.gather(1, places)), window, streams)
    whole = Structural(graph)(Counting(MODEL)(tokens), Counting(MODEL), streams)
    torch.testing.assert_close(within, whole[torch.arange(3)[:, None, None], places[:, :, None], places[:, None]], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("attention", [False, True])
def test_a_network_computes_logits_where_they_are_asked_for(tmp_path: Path, attention: bool) -> None:
    model = pairmi.load(made("bert", tmp_path), attention=attention)
    shapes: list[tuple[int, ...]] = []
    model.backbone.network.get_output_embeddings().register_forward_hook(lambda module, inputs, out: shapes.append(tuple(out.shape)))
    tokens = torch.tensor([[6, 1, 6, 0, 2, 6, 6], [6, 6, 6, 6, 6, 6, 6]])
    places = leftmost(tokens, 6, 3)
    part, whole = predict_at(model, tokens, places), model(tokens)
    assert [shape[:2] for shape in shapes] == [(2, 3), (2, 9)]
    rows = torch.arange(2)[:, None]
    torch.testing.assert_close(part.log_probs, whole.log_probs[rows, places], atol=1e-5, rtol=1e-5)
    assert torch.equal(part.hidden, whole.hidden[rows, places])
    if attention:
        assert torch.equal(part.attention, whole.attention[rows[:, :, None], places[:, :, None], places[:, None]])
    again = MaskedLM(model.backbone.network, model.backbone.translation, model.backbone.settings)
    with torch.no_grad():
        assert torch.equal(again.at(tokens, places).log_probs, part.log_probs)
    lone = predict_at(model, tokens[:1], places[:1])
    assert torch.equal(lone.log_probs, part.log_probs[:1])


@pytest.mark.parametrize("spec", ["top-k:k=2", "top-k:k=2,block=4", "top-k:k=2,block=1"])
@pytest.mark.parametrize("verify", [False, True])
def test_a_stop_ends_a_row_and_drops_what_is_behind(spec: str, verify: bool) -> None:
    given = canvases(40, 1.0)
    given[:, 1] = 2  # which is given, and so ends nothing
    free = pairmi.decode(MODEL, given, spec, seed=4, verify=verify)
    stopped = pairmi.decode(MODEL, given, spec, seed=4, verify=verify, stop="c")
    early = 0
    for one, other in zip(free, stopped, strict=True):
        ends = [i for i, token in enumerate(one.tokens.tolist()) if token == 2 and i != 1]
        expected = one.text[: ends[0] + 1] if ends else one.text
        assert other.text == expected
        early += other.passes < one.passes
    assert early > 2


def test_blocks_that_cannot_be_are_refused() -> None:
    for block in (0, -1):
        with pytest.raises(PairmiError, match=rf"InBlocks\(block={block}\): block must be >= 1"):
            rule(f"eb:block={block}", MODEL)
    with pytest.raises(PairmiError, match=r"rule 'eb:block=x': block must be a whole number, got 'x'"):
        rule("eb:block=x", MODEL)
    with pytest.raises(PairmiError, match=r"block=13: must be from 1 to the number of positions, here 12; without block= all are"):
        pairmi.decode(MODEL, "............", "eb:block=13")
    with pytest.raises(PairmiError, match=r"block=13: must be from 1 to the number of positions, here 12"):
        pairmi.mutual_information(MODEL, "............", block=13)
    with pytest.raises(PairmiError, match=r"block=13: must be from 1 to the number of positions, here 12"):
        pairmi.price(MODEL, "............", "eb:block=13", sequences=1)
    with pytest.raises(PairmiError, match=r"InBlocks\(block=4\): only decode and price go block by block; leave block= out"):
        evaluate(SMALL, unknown(SMALL)[0], rule("eb:block=4", Model(SMALL)))


def test_a_stop_is_one_symbol() -> None:
    for stop in ("ab", 5, -1):
        with pytest.raises(PairmiError, match=rf"stop: expected one symbol, or its id from 0 to 4, got {stop!r}"):
            pairmi.decode(MODEL, "............", "eb", stop=stop)
    with pytest.raises(PairmiError, match="stop: 'z' at position 1 is not in the alphabet"):
        pairmi.decode(MODEL, "............", "eb", stop="z")


def test_predictions_are_kept_of_the_window() -> None:
    steps = list(iter_decode(MODEL, canvases(1), rule("eb:block=2", MODEL), Sampling(1), keep_predictions=True))
    assert all(isinstance(step.prediction, Prediction) and step.prediction.tokens.shape[1] == 2 for step in steps)
