"""Members that wait for a later pass: exact in exact worlds, and priced alike by formula and by branches."""

import math
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from heads import tables, tiny
from pairmi.bench.exact import evaluate
from pairmi.commit import Sampling
from pairmi.counting import Counting
from pairmi.decoding import iter_decode
from pairmi.deferring import WAITS, Deferring, ask
from pairmi.draw import Streams
from pairmi.info import total_variation
from pairmi.loading import load
from pairmi.mi.deferred import Deferred
from pairmi.mi.probed_tables import ProbedTables
from pairmi.model import Model
from pairmi.pricing.price import measure
from pairmi.pricing.walk import walk
from pairmi.selectors.top_k import TopK
from pairmi.selectors.wrappers import Coupled
from pairmi.spec import rule
from pairmi.types import Meter, PairmiError, Prediction, Reason, State
from studies.exact_price import exact_price
from worlds import SMALL as WORLDS
from worlds import Incoherent, decode, generator, unknown

MODEL = tiny()
CANVASES = torch.where(torch.rand(9, 8, generator=generator(1)) < 0.8, 4, 1)


@dataclass(frozen=True)
class Moved:
    """Exact tables that doubt whoever has moved far."""

    tables: ProbedTables = field(default_factory=ProbedTables)

    def begin(self, prediction: Prediction, members: Tensor, backbone: Meter) -> State:
        return self.tables.begin(prediction, members, backbone)

    def after(self, state: State, rank: Tensor, symbol: Tensor, backbone: Meter) -> State:
        told = self.tables.after(state, rank, symbol.clamp_min(0), backbone)
        waits = symbol == WAITS
        return dict(state) | {n: x.where(~waits.view(-1, *(1 for _ in x.shape[1:])), state[n]) for n, x in told.items()}

    def shifted(self, state: State, rank: Tensor) -> Tensor:
        return self.tables.shifted(state, rank)

    def doubted(self, state: State, rank: Tensor) -> tuple[Tensor, Tensor]:
        own = self.shifted(state, rank)
        return own, total_variation(own, state["log_probs"][torch.arange(len(rank)), rank])


def moved(limit: float, late: float = 0.0) -> Deferred:
    return Deferred(Moved(), limit, late)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(("limit", "late"), [(0.0, 0.0), (0.1, 0.0), (0.4, 0.0), (0.0, 0.5), (0.1, 0.4), (0.1, 9.0)])
def test_the_price_by_formula_is_that_by_branches_and_verified_drafts_are_exact(world: str, limit: float, late: float) -> None:
    selector, canvas = Coupled(TopK(4), moved(limit, late)), unknown(WORLDS[world])[0]
    plain, checked = (evaluate(WORLDS[world], canvas, selector, verify=verify) for verify in (False, True))
    price = exact_price(WORLDS[world], canvas, selector)
    assert price.nats == pytest.approx(plain.kl, abs=1e-9)
    assert price.passes >= exact_price(WORLDS[world], canvas, Coupled(TopK(4), ProbedTables())).passes - 1e-9
    assert checked.kl < 1e-12
    assert checked.total_variation < 1e-12


def test_the_doubtful_come_last_the_least_doubted_first() -> None:
    """Scripted doubts: a member over the limit comes after all others, as long as the doubts of the set fit."""

    @dataclass(frozen=True)
    class Scripted(Moved):
        nats: tuple[float, ...] = (0, 0.3, 0.01, 0.2, 0.02, 0.5)

        def doubted(self, state: State, rank: Tensor) -> tuple[Tensor, Tensor]:
            return self.shifted(state, rank), torch.tensor(self.nats)[rank]

    world = Incoherent(6, 3, 1, 2.0)
    meter, size, cases = Counting(world), torch.tensor([6, 4]), {0.0: [2, 4], 0.25: [2, 4, 3], 0.54: [2, 4, 3, 1], 9.0: [2, 4, 3, 1, 5]}
    for late, expected in cases.items():
        coupling, found = Deferred(Scripted(), 0.1, late), ([], [])
        state = coupling.begin(meter(unknown(world, 2)), torch.arange(6).expand(2, -1), meter)
        for number in range(1, 12):
            asked = ask(coupling, state, number, size)
            for row, (rank, waits) in enumerate(zip(asked.rank.tolist(), asked.waits.tolist(), strict=True)):
                found[row].extend([rank] if rank >= 0 and not waits else [])
            symbol = torch.where(asked.waits | (asked.rank < 0), WAITS, 1)
            state = coupling.after(asked.state, asked.rank.clamp_min(0), symbol, meter)
        assert found[0] == expected
        assert found[1] == ([2, 3, 1] if late > 0.5 else [2, 3] if late else [2])  # the same of the first four


def test_waiting_saves_nats_and_takes_passes() -> None:
    canvas, prices = unknown(WORLDS["permutations"])[0], []
    for limit in (1.0, 0.3, 0.0):
        prices.append(exact_price(WORLDS["permutations"], canvas, Coupled(TopK(4), moved(limit))))
    whole = exact_price(WORLDS["permutations"], canvas, Coupled(TopK(4), ProbedTables()))
    assert prices[0].nats == whole.nats
    assert prices[0].passes == whole.passes
    assert prices[2].nats < 1e-12
    assert prices[0].passes < prices[2].passes


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("greedy", [False, True])
def test_no_row_depends_on_its_batch(verify: bool, greedy: bool) -> None:
    world = Incoherent(6, 3, 1, 2.0)
    canvases = torch.where(torch.rand(12, 6, generator=generator(0)) < 0.8, 3, 1)
    selector, sampling = Coupled(TopK(4), moved(0.15)), Sampling(3, 0.8, greedy, verify)
    whole = decode(world, canvases, selector, sampling)
    for size in (1, 5):
        other = decode(world, canvases, selector, sampling, batch_size=size)
        assert all(torch.equal(getattr(whole, name), getattr(other, name)) for name in ("tokens", "passes", "rows", "probe_rows"))
    assert not torch.equal(whole.rows, decode(world, canvases, Coupled(TopK(4), ProbedTables()), sampling).rows)


@pytest.mark.parametrize("verify", [False, True])
def test_the_loop_draws_what_the_branches_say(verify: bool) -> None:
    world, draws, selector = WORLDS["markov"], 20_000, Coupled(TopK(5), moved(0.1))
    found = decode(world, unknown(world, draws), selector, Sampling(1, verify=verify), batch_size=5000)
    expected = evaluate(world, unknown(world)[0], selector, verify)
    assert float(found.passes.double().mean()) == pytest.approx(expected.passes, abs=0.02)
    share, truth = world.consistent(found.tokens).double().mean(0), world.posterior(unknown(world))[0]
    assert float((share - truth).abs().sum() / 2) < expected.total_variation + 0.5 * math.sqrt(len(truth) / draws)


def test_a_walk_defers_as_decoding_does() -> None:
    world, canvases = WORLDS["markov"], list(unknown(WORLDS["markov"], 400))
    rules = {"all": Coupled(TopK(5), ProbedTables()), "few": Coupled(TopK(5), moved(0.1)), "fewer": Coupled(TopK(5), moved(0.02))}
    found = measure(world, canvases, rules, seed=2)
    for one, selector in zip(found, rules.values(), strict=True):
        exact = exact_price(world, canvases[0], selector)
        assert {round(x, 9) for x in one.each.tolist()} <= {round(x, 9) for x in exact.each.tolist()}
        assert one.passes == pytest.approx(exact.passes, abs=0.15)
        assert one.nats == pytest.approx(exact.nats, abs=0.03)
        assert len(one.members) == 400 * len(canvases[0])
    assert found[0].passes < found[1].passes < found[2].passes


def test_who_waits_is_told_why() -> None:
    world = WORLDS["permutations"]
    step = next(iter_decode(world, unknown(world, 3), Coupled(TopK(4), moved(0.0)), Sampling()))
    late = (step.tokens == world.vocab.size) & (step.waiting.reason == Reason.BUDGET)
    assert step.committed.sum(1).tolist() == [1, 1, 1]
    assert late.sum(1).tolist() == [3, 3, 3]
    assert bool((step.waiting.amount[late] > 0).all())


@pytest.mark.parametrize("verify", [False, True])
def test_learnt_tables_defer(verify: bool) -> None:
    head = tables(doubt=5)
    prediction = Counting(MODEL)(unknown(MODEL, 5))
    state = head.begin(prediction, torch.arange(8).expand(5, -1), Counting(MODEL))
    for rank, symbol in enumerate((2, WAITS, 1)):
        state = head.after(state, torch.full((5,), rank), torch.full((5,), symbol), Counting(MODEL))
    own, doubt = head.doubted(state, torch.full((5,), 3))
    assert torch.equal(own, head.shifted(state, torch.full((5,), 3)))
    swapped = head.begin(prediction, torch.arange(8)[[0, 2, 3, 1, 4, 5, 6, 7]].expand(5, -1), Counting(MODEL))
    for rank, symbol in enumerate((2, 1)):  # the same without the one who waits
        swapped = head.after(swapped, torch.full((5,), rank), torch.full((5,), symbol), Counting(MODEL))
    other, same = head.doubted(swapped, torch.full((5,), 2))
    assert torch.allclose(own, other, atol=1e-6)
    assert torch.allclose(doubt, same, rtol=1e-4)
    limit = float(doubt.median())
    selector, sampling = Coupled(TopK(5), Deferred(head, limit)), Sampling(3, verify=verify)
    assert isinstance(selector.coupling, Deferring)
    whole = decode(MODEL, CANVASES, selector, sampling)
    for size in (1, 4):
        assert torch.equal(whole.tokens, decode(MODEL, CANVASES, selector, sampling, batch_size=size).tokens)
    assert not torch.equal(whole.passes, decode(MODEL, CANVASES, Coupled(TopK(5), head), sampling).passes)


def test_what_cannot_defer_is_refused() -> None:
    with pytest.raises(PairmiError, match=r"^rule 'eb:draw=probed,defer=1': defer needs draw=coupled and learnt tables"):
        rule("eb:draw=probed,defer=1", load("sudoku4"))
    with pytest.raises(PairmiError, match=r"^rule 'eb:defer=1': defer needs draw=coupled and learnt tables"):
        rule("eb:defer=1", load("sudoku4"))
    model = Model(MODEL.backbone, tables=tables())
    with pytest.raises(PairmiError, match=r"defer: these tables do not know what they lose; teach them with"):
        rule("top-k:draw=coupled,defer=0.1", model)
    with pytest.raises(PairmiError, match=r"TableHead: these tables do not know what they lose"):
        tables().doubted(tables().begin(MODEL(unknown(MODEL)), torch.arange(8)[None], Counting(MODEL)), torch.zeros(1, dtype=torch.long))
    with pytest.raises(PairmiError, match=r"defer=-1\.0, late=0\.0: must be >= 0 nats"):
        Deferred(tables(doubt=3), -1.0)
    with pytest.raises(PairmiError, match=r"late=nan: must be >= 0 nats"):
        Deferred(tables(doubt=3), 0.1, float("nan"))
    with pytest.raises(PairmiError, match=r"^rule 'eb:draw=coupled,late=1': late needs defer=NATS, which says who is in doubt"):
        rule("eb:draw=coupled,late=1", model)
    assert rule("top-k:draw=coupled,defer=0.1", Model(MODEL.backbone, tables=tables(doubt=3))).coupling.limit == 0.1
    with pytest.raises(PairmiError, match=r"price: a way of drawing that defers members chooses its own sets"):
        walk(WORLDS["markov"], unknown(WORLDS["markov"], 2), TopK(2), Streams(0, torch.arange(2)), draws=(None, moved(0.1)))
