import math

import pytest
import torch
from scipy.stats import chisquare

import pairmi
from pairmi.backbones.tabular import Tabular
from pairmi.bench.exact import evaluate
from pairmi.commit import Sampling
from pairmi.decoding import iter_decode
from pairmi.draw import tempered
from pairmi.model import Model
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.selectors.top_k import Sequential, TopK
from pairmi.spec import rule
from pairmi.tasks.tables import permutations, random_table
from pairmi.types import Backbone, PairmiError, Selection, Turn
from rules import reckless
from worlds import Fixed, Incoherent, Listening, decode, generator, tabular, unknown

SMALL = tabular(random_table(4, 3, generator(5), sparsity=0.5, sharpness=1.0))
ROWS = 3000


def counts(world: Tabular, tokens: torch.Tensor) -> torch.Tensor:
    """How often each sequence of the support was made, and last what is not in it."""
    hits = world.consistent(tokens)
    return torch.cat([hits.sum(0), (~hits.any(1)).sum()[None]])


@pytest.mark.parametrize("spec", ["sequential", *(reckless(name) for name in ("top-k", "eb", "klass", "maskgit", "mi-bound"))])
def test_verified_samples_follow_the_joint(spec: str) -> None:
    out = decode(SMALL, unknown(SMALL, ROWS), rule(spec, Model(SMALL)), Sampling(seed=1, verify=True), batch_size=ROWS)
    seen = counts(SMALL, out.tokens)
    assert seen[-1] == 0
    assert chisquare(seen[:-1].numpy(), (ROWS * SMALL.weights).numpy()).pvalue > 1e-3


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize(
    "spec", ["top-k:k=2", "eb:budget=0.8", "klass:threshold=0.4,drift=0.5", "mi-guided:budget=2", "mi-bound:budget=0.2"]
)
def test_the_loop_does_what_the_exact_evaluator_says(spec: str, verify: bool) -> None:
    selector = rule(spec, Model(SMALL))
    exact = evaluate(SMALL, unknown(SMALL)[0], selector, verify)
    out = decode(SMALL, unknown(SMALL, ROWS), selector, Sampling(seed=2, verify=verify), batch_size=ROWS)
    for found, expected in ((out.passes, exact.passes), (out.rows, exact.rows)):
        error = 4 * float(found.double().std()) / math.sqrt(ROWS) + 1e-9
        assert abs(float(found.double().mean()) - expected) <= error
    valid = 1 - int(counts(SMALL, out.tokens)[-1]) / ROWS
    assert abs(valid - exact.valid) <= 4 * math.sqrt(max(0.0, exact.valid * (1 - exact.valid)) / ROWS) + 1e-9


class Wilful:
    """A rule that breaks its contract in one way."""

    def __init__(self, way: str) -> None:
        self.way = way

    def __call__(self, turn: Turn) -> Selection:
        good = TopK(2)(turn)
        chosen, order = good.chosen.clone(), good.order.clone()
        if self.way == "known":
            chosen[1, 0], order[1, 0] = True, 2
        elif self.way == "nothing":
            chosen[1] = False
        elif self.way == "gap":
            order[order == 1] = 2
        elif self.way == "twice":
            order[order == 1] = 0
        elif self.way == "shape":
            chosen = chosen[:, :2]
        return Selection(chosen, order, good.waiting)


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("known", "^Wilful: chose position 0 of row 1, which is already known; a rule may choose masked positions only$"),
        ("nothing", "^Wilful: chose nothing for row 1; a rule must fill at least one position$"),
        ("gap", "^Wilful: the order of the chosen positions must be 0, 1, 2, ... without gaps$"),
        ("twice", "^Wilful: the order of the chosen positions must be"),
        ("shape", r"^Wilful: expected a choice of shape \[2, 4\], got \[2, 2\]$"),
    ],
)
def test_a_rule_that_breaks_its_contract_is_named(way: str, message: str, unchecked: None) -> None:
    tokens = unknown(SMALL, 2)
    tokens[:, 0] = 0
    with pytest.raises(PairmiError, match=message):
        decode(SMALL, tokens, Wilful(way), Sampling())


class Forgetful:
    """A rule that chooses, and does not say it."""

    def __call__(self, turn: Turn) -> None:
        TopK(2)(turn)


def test_a_rule_that_returns_no_selection_is_named(unchecked: None) -> None:
    with pytest.raises(PairmiError, match=r"^Forgetful: expected a Selection, got NoneType; return pairmi.types.Selection\(chosen, "):
        decode(SMALL, unknown(SMALL), Forgetful(), Sampling())


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("name", CATALOGUE)
def test_nothing_is_looked_at_for_free(name: str, verify: bool) -> None:
    listening, chosen = Listening(SMALL), rule(reckless(name), Model(SMALL))
    out = decode(listening, unknown(SMALL, 5), chosen, Sampling(verify=verify))
    assert sum(listening.heard) == int(out.rows.sum()) + int(out.probe_rows.sum())
    assert len(listening.heard) >= int(out.passes.max())  # the slowest row takes part in most calls
    assert bool((out.probe_rows > 0).all()) == ("mi" in vars(chosen))


def test_a_pass_is_a_call_and_finished_rows_leave() -> None:
    listening = Listening(Incoherent(4, 2, 0, 1.0))
    tokens = torch.where(torch.arange(4) < torch.tensor([[1], [4], [2]]), 2, 0)
    out = decode(listening, tokens, Sequential(), Sampling())
    assert listening.heard == [3, 2, 1, 1]
    assert out.passes.tolist() == out.rows.tolist() == [1, 4, 2]


def test_a_full_canvas_costs_nothing() -> None:
    tokens = torch.tensor([[0, 1, 0, 1], [2, 2, 2, 2]])
    out = decode(Incoherent(4, 2, 0, 1.0), tokens, Sequential(), Sampling())
    assert out.tokens[0].tolist() == [0, 1, 0, 1]
    assert out.passes.tolist() == [0, 4]
    assert list(iter_decode(Incoherent(4, 2, 0, 1.0), tokens[:1], Sequential(), Sampling())) == []


def test_what_probing_costs_is_told_of_every_canvas() -> None:
    """Once `mi-bound` on 12 positions of 20 symbols reported 1 row and evaluated 241."""
    model = Model(Incoherent(12, 20, 0, 1.0))
    lone = pairmi.decode(model, 12 * ".", "mi-bound:mi=probe,floor=0,budget=1000")
    assert (lone.passes, lone.rows, lone.probe_rows) == (1, 1, 240)
    some = pairmi.decode(model, ["1" + 11 * ".", 12 * ".", 10 * "2" + ".."], "mi-bound:mi=probe,floor=0,budget=1000")
    assert [one.probe_rows for one in some] == [220, 240, 40]


def test_steps_are_light_and_the_input_is_untouched() -> None:
    tokens = unknown(SMALL, 2)
    light, heavy = (list(iter_decode(SMALL, tokens, Sequential(), Sampling(), keep_predictions=keep)) for keep in (False, True))
    assert [step.prediction for step in light] == [None] * 4
    assert all(step.prediction is not None for step in heavy)
    assert (tokens == 3).all()


@pytest.mark.parametrize("verify", [False, True])
def test_cold_draws_are_greedy(verify: bool) -> None:
    model = Incoherent(5, 3, 0, 2.0)
    cold = decode(model, unknown(model, 4), Sequential(), Sampling(temperature=1e-3, verify=verify))
    greedy = decode(model, unknown(model, 4), Sequential(), Sampling(greedy=True))
    assert torch.equal(cold.tokens, greedy.tokens)


def test_verification_is_tempered_too() -> None:
    out = decode(SMALL, unknown(SMALL, ROWS), rule("top-k:k=4,by=margin", Model(SMALL)), Sampling(3, 3.0, verify=True), batch_size=ROWS)
    # one by one in the same order, the most confident first by the model's own probabilities; drawn at that temperature
    expected = torch.zeros(len(SMALL.support) + 1).double()
    for mass, tokens in one_by_one(SMALL, unknown(SMALL)[0], 3.0):
        expected += mass * counts(SMALL, tokens[None])
    seen = counts(SMALL, out.tokens).double()
    keep = expected > 1e-3
    rest = torch.stack([seen[~keep].sum(), ROWS * expected[~keep].sum()])
    observed, wanted = torch.cat([seen[keep], rest[:1] + 1e-9]), torch.cat([ROWS * expected[keep], rest[1:] + 1e-9])
    assert chisquare(observed.numpy(), wanted.numpy()).pvalue > 1e-3
    assert (expected[:-1] - SMALL.weights).abs().sum() > 0.1  # the tempered conditionals make another joint


def one_by_one(
    model: Backbone, canvas: torch.Tensor, temperature: float, order: list[int] | None = None
) -> list[tuple[float, torch.Tensor]]:
    """Every result of drawing one position after the other, as top-k ranks them on the empty canvas."""
    prediction = model(canvas[None])
    if order is None:
        best = prediction.log_probs[0].exp().sort(-1).values
        order = (best[:, -1] - best[:, -2]).argsort(descending=True, stable=True).tolist()
    if not order:
        return [(1.0, canvas)]
    out = []
    for symbol, p in enumerate(tempered(prediction.log_probs[0, order[0]], temperature).exp().tolist()):
        if p > 0:
            child = canvas.clone()
            child[order[0]] = symbol
            out += [(p * mass, tokens) for mass, tokens in one_by_one(model, child, temperature, order[1:])]
    return out


def test_greedy_takes_the_likeliest_whatever_the_seed() -> None:
    world = tabular(permutations(4))
    one, other = (decode(world, unknown(world), TopK(4), Sampling(seed, greedy=True)).tokens for seed in (0, 1))
    assert torch.equal(one, other)
    assert torch.equal(one, world(unknown(world)).log_probs.argmax(-1))


@pytest.mark.parametrize("accept", [-0.1, 1.5, math.nan])
def test_refuses_what_is_no_probability(accept: float) -> None:
    with pytest.raises(PairmiError, match=f"^accept={accept}: must be a probability between 0 and 1$"):
        Sampling(accept=accept)


def test_refuses_an_empty_batch_and_a_batch_size_of_nothing() -> None:
    with pytest.raises(PairmiError, match=r"^decode: batch_size must be >= 1, got 0$"):
        decode(SMALL, unknown(SMALL), Sequential(), Sampling(), batch_size=0)
    with pytest.raises(PairmiError, match=r"^decode: expected at least one canvas, got none$"):
        decode(SMALL, unknown(SMALL, 0), Sequential(), Sampling())


def test_a_backbone_that_returns_nonsense_is_named() -> None:
    for value in (math.nan, math.inf, 3.0):
        with pytest.raises(PairmiError, match=r"^Fixed: log-probabilities of row 0, position 0 sum to .*, expected 1; .* never logits"):
            decode(Fixed(torch.full((2, 2), value), 2), torch.full((1, 2), 2), Sequential(), Sampling())
