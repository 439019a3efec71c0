import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

import pairmi
from pairmi.bench.exact import evaluate
from pairmi.bench.worlds import full_probe
from pairmi.cli import main
from pairmi.commit import Sampling
from pairmi.draw import Streams
from pairmi.loading import load
from pairmi.mi.proxies import RandomMI
from pairmi.model import Model
from pairmi.pricing.interval import bounded_upper, difference_interval, mean_interval, student, unseen_loss, upper_bound
from pairmi.pricing.price import measure
from pairmi.pricing.walk import Members, Watched, drawn, walk
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.selectors.top_k import TopK
from pairmi.spec import rule
from pairmi.tasks.tables import WORLDS, random_table
from pairmi.types import PairmiError, Selection, Turn, Waiting
from rules import singly, varieties
from studies.exact_price import exact_price
from worlds import SMALL, Incoherent, Listening, decode, generator, tabular, unknown

TINY = tabular(random_table(4, 2, generator(2), sparsity=0.6, sharpness=1.5))
REMEMBERING = ["klass:threshold=0.4,drift=1", "maskgit:steps=2", "maskgit:steps=3,noise=1", "top-k:k=2,by=random", "mi-bound:mi=random"]


@pytest.mark.parametrize("world", [*WORLDS, *SMALL])
def test_the_price_in_expectation_is_the_walked_divergence_in_every_world(world: str) -> None:
    model = load(world) if world in WORLDS else Model(SMALL[world])
    table = model.backbone
    part = torch.where(torch.arange(table.length) % 3 == 0, table.support[3 % len(table.support)], table.vocab.size)
    for name in CATALOGUE:
        for spec in (*varieties(name)[-2:], *(r for r in REMEMBERING if r.startswith(name))):
            selector = rule(full_probe(spec), model)
            for canvas in (unknown(table)[0], part):
                found, walked = exact_price(table, canvas, selector), evaluate(table, canvas, selector)
                assert abs(found.nats - walked.kl) < 1e-9, (world, spec)
                assert float(found.mass.sum()) == pytest.approx(1)


def outcomes(world, canvas, selector, temperature, at_once):
    """The output distribution at a temperature, by enumeration; the rule sees the model's own beliefs."""
    ends, mask = {}, world.vocab.size

    def visit(tokens, mass, turn, state):
        if not (tokens == mask).any():
            ends[tuple(tokens.tolist())] = ends.get(tuple(tokens.tolist()), 0) + mass
            return
        beliefs = world(tokens[None])
        choice = selector(Turn(beliefs, world, Streams(0, torch.zeros(1, dtype=torch.long), turn), state))
        branches = [(mass, tokens)]
        for i in choice.order[0].masked_fill(~choice.chosen[0], 99).argsort()[: int(choice.chosen.sum())].tolist():
            grown = []
            for m, t in branches:
                log_p = beliefs.log_probs[0, i] if at_once else world(t[None]).log_probs[0, i]
                p = torch.softmax(log_p / temperature, 0)
                grown += [(m * float(p[v]), t.index_fill(0, torch.tensor([i]), v)) for v in range(len(p)) if p[v] > 0]
            branches = grown
        for m, t in branches:
            visit(t, m, turn + 1, dict(choice.state))

    visit(canvas, 1.0, 0, {})
    return ends


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
@pytest.mark.parametrize("spec", ["top-k:k=3", "eb:budget=0.6", "maskgit:steps=2,noise=1", "mi-bound:budget=0.1"])
def test_the_price_at_a_temperature_is_the_divergence_between_the_two_ways(spec: str, temperature: float) -> None:
    for world in (TINY, Incoherent(3, 2, 0, 1.0)):  # the second contradicts itself: the identity needs no joint
        selector = rule(spec, Model(world))
        one, once = (outcomes(world, unknown(world)[0], selector, temperature, way) for way in (False, True))
        divergence = sum(p * math.log(p / once[x]) for x, p in one.items() if p > 0)
        assert exact_price(world, unknown(world)[0], selector, temperature=temperature).nats == pytest.approx(divergence, abs=1e-9)


@pytest.mark.parametrize(
    "spec", ["eb:budget=0.6", "klass:threshold=0.4,drift=1", "top-k:k=2", "mi-bound:budget=0.2", "threshold:threshold=0.6"]
)
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_the_sampled_price_agrees_with_the_exact_one(spec: str, temperature: float) -> None:
    world = SMALL["table"]
    selector = rule(full_probe(spec), Model(world))
    (found,) = measure(world, list(unknown(world, 600)), {spec: selector}, temperature=temperature)
    exact = exact_price(world, unknown(world)[0], selector, temperature=temperature)
    error = math.sqrt(float(exact.mass @ (exact.each - exact.nats) ** 2) / 600)  # the sample's own may miss the tail
    assert abs(found.nats - exact.nats) < 4 * error + 1e-9
    assert found.passes == pytest.approx(exact.passes, abs=0.3)
    assert found.interval[0] <= found.nats <= found.interval[1]


def test_intervals_cover_in_exact_worlds_heavy_tails_included() -> None:
    """The loss is a function of the finished sequence: 200 repeats cost one walk of all branches."""
    rng, cover, skews = np.random.default_rng(0), [], []
    for world in ("markov", "table", "sparse", "potts"):
        for spec in (
            "eb:budget=0.2",
            "eb:budget=0.5",
            "threshold:threshold=0.9",
            "top-k:k=2",
            "mi-guided:budget=0.7",
            "independent-set:threshold=0.1",
        ):
            exact = exact_price(SMALL[world], unknown(SMALL[world])[0], rule(full_probe(spec), Model(SMALL[world])))
            mass, each = exact.mass.numpy(), exact.each.numpy()
            spread = math.sqrt(float(mass @ (each - exact.nats) ** 2))
            if spread < 1e-9:
                continue
            skews.append(float(mass @ (each - exact.nats) ** 3) / spread**3)
            ends = [mean_interval(x) for x in rng.choice(each, p=mass / mass.sum(), size=(200, 64))]
            cover.append(np.mean([low <= exact.nats <= high for low, high in ends]))
    assert len(cover) >= 12
    assert max(skews) > 10
    assert min(cover) >= 0.93


@pytest.mark.parametrize(
    "spec", ["klass:threshold=0.4,drift=1", "maskgit:steps=3,noise=1", "mi-bound:budget=0.2,mi=random", "top-k:k=3,by=random"]
)
def test_no_result_depends_on_the_batch(spec: str) -> None:
    world = SMALL["markov"]
    canvases = list(torch.cat([unknown(world, 5), torch.where(torch.arange(5) < 2, world.support[7], 3)[None]]))
    many, single = (measure(world, canvases, {spec: rule(spec, Model(world))}, seed=3, batch_size=size)[0] for size in (256, 1))
    assert torch.equal(many.each, single.each)
    assert torch.equal(many.members.position, single.members.position)
    assert many.by_pass == single.by_pass


def test_a_walk_asks_the_rule_what_decoding_asks_it() -> None:
    """Where a set never has two members, pricing is decoding: the same noise of the rule, the same memory, one row a position."""
    world = SMALL["markov"]
    heard = Listening(world)
    selector = rule(singly("maskgit:steps=2,noise=1"), Model(world))
    (found,) = measure(heard, list(unknown(world, 8)), {"single": selector})
    assert found.nats == 0
    assert found.interval == (0, 0)
    assert found.passes == found.rows == 5
    assert sum(heard.heard) == 40
    assert found.acceptance == 1
    assert decode(world, unknown(world, 8), selector, Sampling()).passes.tolist() == found.each_passes.tolist()


def test_a_price_adds_up() -> None:
    model = load("sudoku4")
    canvases = ["." * 16, "1234" + "." * 12]
    found = pairmi.price(model, canvases, ["eb:budget=0.7", "top-k:k=4", "mi-bound:budget=0.2"], sequences=12)
    assert [price.rule for price in found] == ["eb:budget=0.7", "top-k:k=4", "mi-bound:budget=0.2"]
    for price in found:
        assert sum(price.by_pass) == pytest.approx(price.nats) == pytest.approx(sum(price.by_position))
        assert len(price.members) == 6 * (16 + 12)
        assert price.rows == 14
        assert 0 <= price.acceptance <= 1
        assert price.tv_bound == min(1, math.sqrt(price.nats / 2))
        assert price.rejections == pytest.approx(float(price.members.variation.sum()) / 12)
    assert found[2].probe_rows > 0 == found[0].probe_rows
    value, low, high = found[0].against(found[1])
    assert value == pytest.approx(found[0].nats - found[1].nats)
    assert low < value < high
    assert "nats" in str(found[0])
    assert json.loads(json.dumps(found[0].about()))["sequences"] == 12
    assert len(pairmi.price(model, "." * 16, TopK(16)).each) == 32


def test_verified_decoding_accepts_as_the_price_says() -> None:
    world = SMALL["markov"]
    selector = rule("top-k:k=2", Model(world))
    exact = evaluate(world, unknown(world)[0], selector, verify=True)
    (found,) = measure(world, list(unknown(world, 800)), {"top-k": selector})
    assert found.acceptance == pytest.approx(exact.accepted, abs=0.03)


def test_one_unknown_costs_nothing() -> None:
    model = load("sudoku4")
    price = pairmi.price(model, "123434122143432.", "top-k:k=8")
    assert (price.nats, price.interval, price.passes, price.rows) == (0, (0, 0), 1, 1)


def test_symbols_are_drawn_as_they_should_be() -> None:
    p = torch.tensor([0.5, 0.0, 0.2, 0.3], dtype=torch.float64)
    luck = (torch.arange(1000).double() + 0.5) / 1000
    counts = drawn(p.log().expand(1000, -1), luck).bincount(minlength=4)
    assert counts.tolist() == [500, 0, 200, 300]


def test_quantiles_of_student() -> None:
    for freedom, known in ((10, 2.228), (23, 2.069), (200, 1.972)):
        assert student(0.975, freedom) == pytest.approx(known, abs=2e-3)


def test_intervals_of_few_values() -> None:
    assert mean_interval(np.zeros(64)) == (0, unseen_loss(64))
    assert mean_interval(np.zeros(1)) == (0, math.inf)
    assert mean_interval(np.zeros(1), unseen=0.0) == (0, 0)
    assert difference_interval(np.ones(1)) == (-math.inf, math.inf)
    assert difference_interval(np.ones(9)) == (1, 1)
    values = np.random.default_rng(0).exponential(size=400)
    assert values.mean() < upper_bound(values, 0.95) < mean_interval(values)[1]


def test_the_bound_of_bounded_values_is_valid_and_not_idle() -> None:
    rng = np.random.default_rng(0)
    samples = rng.choice([0.0, 1.0], p=[0.9, 0.1], size=(200, 300))
    bounds = np.array([bounded_upper(x, 0.0, 1.0) for x in samples])
    assert np.mean(bounds >= 0.1) >= 0.95
    assert np.median(bounds) < 0.17
    assert bounded_upper(np.zeros(700), -1.0, 1.0) < 0.01
    assert bounded_upper(np.ones(3), -1.0, 1.0) == 1


class Stubborn:
    def __init__(self, chosen: bool) -> None:
        self.chosen = chosen

    def __call__(self, turn: Turn) -> Selection:
        order = torch.zeros_like(turn.prediction.tokens)
        return Selection(torch.full_like(order, self.chosen, dtype=torch.bool), order, Waiting(order, order, order.double()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"canvases": []}, "canvases: expected at least one, got none"),
        ({"canvases": "1" + "." * 14}, "canvas: expected 16 positions, got 15"),
        ({"canvases": "x" + "." * 15}, "canvas: 'x' at position 1 is not in the alphabet"),
        ({"canvases": "1234341221434321"}, "every position is given"),
        ({"sequences": 0}, "sequences=0: must be at least 1"),
        ({"temperature": 0.0}, "temperature=0.0: must be a number above 0"),
        ({"batch_size": 0}, "batch_size must be >= 1, got 0"),
        ({"rules": []}, "at least one canvas and one rule, got 32 and 0"),
        ({"rules": "mi-bound:mi=head"}, "has no head; load"),
        ({"rules": "mi-bound:charge=calibrated"}, "has no calibration; make one"),
        ({"rules": "mi-bound:charge=free"}, "charge must be one of pairwise, calibrated, got 'free'"),
        ({"rules": Stubborn(False)}, "Stubborn: must choose at least one unknown position"),
    ],
)
def test_bad_input_is_named(arguments, message: str) -> None:
    given = {"canvases": "." * 16, "rules": "eb"} | arguments
    with pytest.raises(PairmiError, match=message):
        pairmi.price(load("sudoku4"), **given)


def test_other_bad_input_is_named() -> None:
    model = load("xor")
    with pytest.raises(PairmiError, match="were priced on other sequences"):
        pairmi.price(model, "...", "eb").against(pairmi.price(model, "...", "eb", seed=1))
    with pytest.raises(PairmiError, match="nothing is unknown"):
        walk(model, torch.zeros(1, 3, dtype=torch.long), TopK(1), Streams(0, torch.zeros(1, dtype=torch.long)))
    with pytest.raises(PairmiError, match="TopK: does not look at pairs"):
        measure(model, [torch.full((3,), 2)], {"k": TopK(1)}, watched=Watched(RandomMI()))


def test_members_can_be_picked() -> None:
    (found,) = measure(load("xor"), [torch.full((3,), 2)], {"k": TopK(3)})
    assert isinstance(found.members.later, Members)
    assert found.members.later.rank.tolist() == [1, 2]
    assert found.nats == pytest.approx(math.log(2))


def test_the_command_prints_a_table_a_document_and_a_frontier(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command = ["price", "--backbone", "sudoku4", "--canvas", "." * 16, "--sequences", "8", "--rules", "sequential", "top-k:k=4"]
    figure = tmp_path / "frontier.png"
    assert main([*command, "--figure", str(figure)]) == 0
    out = capsys.readouterr().out
    assert "| sequential | 0 " in out
    assert "8 sequences, seed 0" in out
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert main([*command, "--json", "--seed", "2"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["rule"] for one in document["results"]] == ["sequential", "top-k:k=4"]
    assert document["results"][0]["nats"] == 0 < document["results"][1]["nats"]
    assert main(["price", "--backbone", "sudoku4", "--canvas", "12", "--rules", "eb"]) == 2
    assert capsys.readouterr().err == "pairmi price: canvas: expected 16 positions, got 2\n"
    assert main([*command, "--batch", "0"]) == 2
    assert capsys.readouterr().err.startswith("pairmi price: argument --batch: expected a whole number of at least 1, got '0'")


def test_the_command_calibrates_first(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["price", "--backbone", "xor", "--canvas", "...", "--sequences", "8", "--calibrate", "16", "--json"]
    assert main([*command, "--rules", "mi-bound:budget=0.1", "mi-bound:budget=0.1,charge=calibrated"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [round(one["nats"], 3) for one in document["results"]] == [0.693, 0]
    assert document["calibration"]["features"] == ["shared", "strongest", "entropy", "size", "unknown"]
