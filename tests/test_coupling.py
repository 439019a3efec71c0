"""Members that are drawn together: exact in exact worlds, verified exactly, priced by formula and by branches alike."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given

from pairmi.bench.exact import evaluate
from pairmi.bench.worlds import full_probe
from pairmi.commit import Sampling
from pairmi.loading import load
from pairmi.mi.probed_tables import ProbedTables, combined
from pairmi.mi.proxies import RandomMI
from pairmi.model import Model
from pairmi.pricing.price import measure
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.selectors.eb import EB
from pairmi.selectors.top_k import TopK
from pairmi.selectors.wrappers import Coupled
from pairmi.spec import rule
from pairmi.tasks.tables import parity
from pairmi.types import PairmiError
from rules import reckless
from studies.exact_price import exact_price
from worlds import SMALL as WORLDS
from worlds import Incoherent, Recipe, decode, generator, many, recipes, tabular, unknown

COUPLED = [f"{reckless(name)}{',' if ':' in reckless(name) else ':'}draw=probed" for name in CATALOGUE]


@many(60)
@given(recipes())
def test_two_members_cost_nothing_at_any_temperature(recipe: Recipe) -> None:
    world, contexts = recipe.coherent()
    for canvas in contexts[(contexts == world.vocab.size).any(1)]:
        if not world.consistent(canvas[None]).any():
            continue
        for temperature in (1.0, 0.5, 2.0):
            assert exact_price(world, canvas, Coupled(TopK(2), ProbedTables()), temperature=temperature).nats < 1e-12
        assert evaluate(world, canvas, Coupled(TopK(2), ProbedTables())).kl < 1e-12


def test_two_members_cost_something_without_tables() -> None:
    assert all(exact_price(world, unknown(world)[0], TopK(2)).nats > 0.01 for name, world in WORLDS.items() if name != "parity")


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("spec", COUPLED)
def test_every_rule_draws_together(spec: str, world: str) -> None:
    """The price by formula is the divergence by branches, and verified drafts reproduce the joint."""
    selector, canvas = rule(full_probe(spec), Model(WORLDS[world])), unknown(WORLDS[world])[0]
    assert isinstance(selector, Coupled)
    plain, checked = (evaluate(WORLDS[world], canvas, selector, verify=verify) for verify in (False, True))
    assert exact_price(WORLDS[world], canvas, selector).nats == pytest.approx(plain.kl, abs=1e-9)
    assert checked.kl < 1e-12
    assert checked.total_variation < 1e-12


def test_tables_of_pairs_see_nothing_of_an_xor() -> None:
    world = tabular(parity(3))
    prices = [exact_price(world, unknown(world)[0], selector).nats for selector in (TopK(3), Coupled(TopK(3), ProbedTables()))]
    assert prices == pytest.approx([math.log(2), math.log(2)], abs=1e-12)


def test_tables_help_where_pairs_tell() -> None:
    for name in ("markov", "potts", "permutations"):
        canvas = unknown(WORLDS[name])[0]
        plain, coupled = (exact_price(WORLDS[name], canvas, one).nats for one in (TopK(4), Coupled(TopK(4), ProbedTables())))
        assert coupled < 0.5 * plain


def test_the_strongest_exclusion_and_the_strongest_support() -> None:
    log_p = torch.tensor([0.5, 0.25, 0.25]).log().double()
    low, high = torch.tensor([0.0, -1.0, -torch.inf]).double(), torch.tensor([0.5, 0.25, 0.0]).double()
    expected = torch.tensor([0.5 * math.exp(0.5), 0.25 * math.exp(-0.75), 0.0]).double()
    assert combined(log_p, low, high).exp().tolist() == pytest.approx((expected / expected.sum()).tolist())
    assert combined(log_p, torch.full_like(low, -torch.inf), high).exp().tolist() == pytest.approx([0.5, 0.25, 0.25])


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("greedy", [False, True])
def test_no_row_depends_on_its_batch(verify: bool, greedy: bool) -> None:
    world = Incoherent(6, 3, 1, 2.0)
    canvases = torch.where(torch.rand(12, 6, generator=generator(0)) < 0.8, 3, 1)
    selector, sampling = Coupled(EB(2.0), ProbedTables()), Sampling(3, 0.8, greedy, verify)
    whole = decode(world, canvases, selector, sampling)
    for size in (1, 5):
        other = decode(world, canvases, selector, sampling, batch_size=size)
        assert all(torch.equal(getattr(whole, name), getattr(other, name)) for name in ("tokens", "passes", "rows", "probe_rows"))


@pytest.mark.parametrize("verify", [False, True])
def test_the_loop_draws_what_the_branches_say(verify: bool) -> None:
    """Two members by exact tables, and any number of them verified: the joint itself."""
    world, draws = WORLDS["markov"], 20_000
    selector = Coupled(TopK(5 if verify else 2), ProbedTables())
    found = decode(world, unknown(world, draws), selector, Sampling(1, verify=verify), batch_size=5000)
    share = world.consistent(found.tokens).double().mean(0)
    truth = world.posterior(unknown(world))[0]
    assert float((share - truth).abs().sum() / 2) < 0.5 * math.sqrt(len(truth) / draws)


def test_every_drawn_member_but_the_last_is_a_row_of_probing() -> None:
    world = WORLDS["potts"]
    found = decode(world, unknown(world, 3), Coupled(TopK(4), ProbedTables()), Sampling())
    assert found.probe_rows.tolist() == [3 + 1] * 3
    assert found.rows.tolist() == [2] * 3
    assert decode(world, unknown(world, 3), TopK(4), Sampling()).probe_rows.tolist() == [0] * 3


def test_one_walk_prices_several_ways_of_drawing() -> None:
    world = WORLDS["table"]
    canvases = list(unknown(world, 40))
    rules = {spec: rule(full_probe(spec), Model(world)) for spec in ("mi-bound:budget=2", "mi-bound:budget=2,draw=probed", "top-k:k=3")}
    together = measure(world, canvases, rules, seed=4)
    for one, (name, selector) in zip(together, rules.items(), strict=True):
        assert one.rule == name
        alone = measure(world, canvases, {name: selector}, seed=4, batch_size=7)[0]
        assert torch.equal(one.each, alone.each)
    exact = exact_price(world, canvases[0], rules["mi-bound:budget=2,draw=probed"])
    assert {round(x, 9) for x in together[1].each.tolist()} <= {round(x, 9) for x in exact.each.tolist()}
    assert together[1].nats < together[0].nats


def test_a_rule_says_how_it_draws() -> None:
    model = load("sudoku4")
    assert rule("top-k:k=3,draw=coupled", model) == Coupled(TopK(3), ProbedTables())
    assert rule("top-k:k=3,draw=marginal", model) == TopK(3)
    with pytest.raises(PairmiError, match=r"^rule 'eb:draw=it': draw must be one of marginal, coupled, probed, got 'it'$"):
        rule("eb:draw=it", model)
    headed = replace(model, head=RandomMI())
    assert rule("mi-bound:mi=probe,draw=coupled", headed).coupling == ProbedTables()
    with pytest.raises(PairmiError, match=r"^rule 'mi-bound:draw=coupled': the head of model 'sudoku4' has no tables; take draw=probed"):
        rule("mi-bound:draw=coupled", headed)
