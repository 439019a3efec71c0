import math
from collections import defaultdict

import pytest
import torch

from pairmi.backbones.tabular import Tabular
from pairmi.bench.exact import Exact, evaluate
from pairmi.bench.worlds import full_probe
from pairmi.commit import Sampling
from pairmi.decoding import iter_decode
from pairmi.draw import Streams
from pairmi.loading import load
from pairmi.model import Model
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import rule
from pairmi.tasks.tables import random_table
from pairmi.types import Selector, Turn
from rules import PAIRWISE, reckless
from worlds import SMALL as WORLDS
from worlds import generator, tabular, unknown

SUDOKU = load("sudoku4")
TINY = tabular(random_table(4, 2, generator(2), sparsity=0.6, sharpness=1.5))
GRID = SUDOKU.backbone.support[17]
PARTIAL = torch.where(torch.arange(16) % 8 == 0, GRID, 4)


def naive(world: Tabular, canvas: torch.Tensor, selector: Selector) -> Exact:
    """Every draw of every chosen symbol, possible or not, one context at a time."""
    ends: dict[tuple[int, ...], float] = defaultdict(float)
    passes = 0.0

    def walk(tokens: torch.Tensor, mass: float, turn: int, state: dict[str, torch.Tensor]) -> None:
        nonlocal passes
        if not (tokens == world.vocab.size).any():
            ends[tuple(tokens.tolist())] += mass
            return
        passes += mass
        prediction = world(tokens[None])
        selection = selector(Turn(prediction, world, Streams(0, torch.zeros(1, dtype=torch.long), turn), state))
        branches = [(mass, tokens)]
        for i in selection.chosen[0].nonzero()[:, 0].tolist():
            p = prediction.log_probs[0, i].exp().tolist()
            branches = [(m * p[v], t.index_fill(0, torch.tensor([i]), v)) for m, t in branches for v in range(len(p)) if p[v] > 0]
        for m, t in branches:
            walk(t, m, turn + 1, dict(selection.state))

    walk(canvas, 1.0, 0, {})
    truth = {tuple(x): p for x, p in zip(world.support.tolist(), world.posterior(canvas[None])[0].tolist(), strict=True) if p > 0}
    kl = sum(p * math.log(p / ends[x]) for x, p in truth.items())
    distance = 0.5 * sum(abs(truth.get(x, 0) - ends.get(x, 0)) for x in {*truth, *ends})
    return Exact(kl, distance, sum(p for x, p in ends.items() if x in truth), passes, passes, 1.0)


@pytest.mark.parametrize(
    "spec",
    [
        "sequential:by=random",
        "top-k:k=2",
        "top-k:k=3,by=entropy",
        "eb:budget=0.6",
        "threshold:threshold=0.6",
        "klass:threshold=0.4,drift=1",
        "maskgit:steps=2",
        "mi-guided:budget=1.5",
        "mi-bound:budget=0.1",
        "independent-set:threshold=0.1",
    ],
)
def test_the_walk_equals_a_naive_enumeration(spec: str) -> None:
    selector = rule(spec, Model(TINY))
    for canvas in (unknown(TINY)[0], torch.where(torch.tensor([True, False, True, True]), 2, TINY.support[0])):
        walked, expected = evaluate(TINY, canvas, selector), naive(TINY, canvas, selector)
        for field in ("kl", "total_variation", "valid", "passes", "rows", "accepted"):
            assert getattr(walked, field) == pytest.approx(getattr(expected, field), abs=1e-12)


def test_some_of_these_lose_something() -> None:
    lossy = evaluate(TINY, unknown(TINY)[0], rule("top-k:k=3,by=entropy", Model(TINY)))
    assert lossy.kl > 0.01
    assert lossy.total_variation > 0.01
    assert lossy.valid < 1


@pytest.mark.parametrize("by", ["confidence", "margin", "entropy", "random"])
@pytest.mark.parametrize("world", [*WORLDS, "sudoku"])
def test_one_by_one_is_the_joint(world: str, by: str) -> None:
    table = SUDOKU.backbone if world == "sudoku" else WORLDS[world]
    part = PARTIAL if world == "sudoku" else torch.where(torch.arange(table.length) % 3 == 0, table.support[3], table.vocab.size)
    for canvas in (unknown(table)[0], part):
        exact = evaluate(table, canvas, rule(f"sequential:by={by}", Model(table)))
        assert abs(exact.kl) < 1e-12
        assert exact.total_variation < 1e-12
        assert exact.valid == pytest.approx(1, abs=1e-12)
        assert exact.passes == pytest.approx(int((canvas == table.vocab.size).sum()))


RECKLESS = [reckless(name) for name in CATALOGUE] + [f"{reckless(name)},mi={mi}" for name in PAIRWISE for mi in ("random", "shuffled")]


@pytest.mark.parametrize("world", ["table", "sparse", "permutations", "parity"])
@pytest.mark.parametrize("spec", [*RECKLESS, "top-k:k=16,by=random"])
def test_verified_decoding_is_the_joint_whatever_the_rule(spec: str, world: str) -> None:
    table = WORLDS[world]
    exact = evaluate(table, unknown(table)[0], rule(spec, Model(table)), verify=True)
    assert abs(exact.kl) < 1e-12
    assert exact.total_variation < 1e-12
    assert 0 < exact.accepted <= 1
    assert exact.passes <= exact.rows + 1e-12


@pytest.mark.parametrize("spec", ["top-k:k=16", "mi-bound:budget=50,mi=structural"])
def test_verified_sudoku_is_exact_however_reckless(spec: str) -> None:
    selector = rule(spec, SUDOKU)
    for canvas in (unknown(SUDOKU)[0], PARTIAL):
        plain, verified = (evaluate(SUDOKU.backbone, canvas, selector, verify) for verify in (False, True))
        assert abs(verified.kl) < 1e-12
        assert plain.kl > 0.1
        assert plain.passes < verified.passes < int((canvas == 4).sum())
        assert verified.accepted < 1


@pytest.mark.parametrize("spec", ["mi-guided:budget=0,floor=0", "mi-bound:budget=0,floor=0", "independent-set:threshold=0,floor=0"])
@pytest.mark.parametrize("world", ["table", "permutations", "markov", "sudoku"])
def test_without_a_budget_no_dependent_pair_is_filled_together(world: str, spec: str) -> None:
    model = SUDOKU if world == "sudoku" else Model(WORLDS[world])
    several = False
    for step in iter_decode(model, unknown(model, 4), rule(spec, model), Sampling(seed=1)):
        chosen, before = step.committed.double(), step.tokens.masked_fill(step.committed, model.vocab.size)
        shared = torch.einsum("bi,bij,bj->b", chosen, model.backbone.mutual_information(before), chosen)
        assert (shared < 1e-9).all()
        several |= bool((chosen.sum(1) > 1).any())
    assert several or world != "sudoku"


@pytest.mark.parametrize(
    ("spec", "passes"),
    [
        ("sequential", 16),
        ("eb:budget=0", 7.667),
        ("threshold:threshold=0.99", 10),
        ("mi-guided:budget=1.4", 5.667),
        ("mi-bound:budget=0", 5.667),
        ("mi-bound:budget=0,order=information", 4.333),
        ("mi-bound:budget=0,order=highest-entropy", 4),
    ],
)
def test_sudoku_from_empty_is_loss_free_in_so_many_passes(spec: str, passes: float) -> None:
    exact = evaluate(SUDOKU.backbone, unknown(SUDOKU)[0], rule(full_probe(spec), SUDOKU))
    assert abs(exact.kl) < 1e-9
    assert exact.valid == pytest.approx(1)
    assert exact.passes == pytest.approx(passes, abs=1e-3)
