import json
import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

import pairmi
from pairmi.bench.ledger import resolved
from pairmi.loading import load
from pairmi.mi.probed_tables import ProbedTables
from pairmi.model import Model
from pairmi.pricing.calibrate import calibrate, fit_budget, fit_charge, predicted, reliability
from pairmi.pricing.price import measure
from pairmi.pricing.walk import Members
from pairmi.selectors.charge import RISING, Calibration
from pairmi.selectors.mi_bound import MIBound
from pairmi.selectors.top_k import TopK
from pairmi.spec import rule
from pairmi.tasks.tables import random_table
from pairmi.tuning import calibrated_rule, coupled_rule
from pairmi.types import PairmiError
from rules import Given, situation
from studies.exact_price import ExactPrice, exact_price
from worlds import generator, tabular

STEEP = Calibration(-3.0, ((-5.0, 0.0), (-5.0, 0.0), (-5.0, 1.0), (0.0, 2.0), (0.0, 4.0)), ((2.0,), (1.0,), (0.5,), (0.7,), (-0.6,)))


def invented(count: int = 4000, seed: int = 0) -> Members:
    """Members whose loss follows a known map, with heavy noise of mean 1."""
    rng = torch.Generator().manual_seed(seed)
    strongest = torch.rand(count, generator=rng, dtype=torch.float64)
    shared = strongest * (1 + 3 * torch.rand(count, generator=rng, dtype=torch.float64))
    entropy, rank = torch.rand(count, generator=rng, dtype=torch.float64), torch.randint(1, 9, (count,), generator=rng)
    noise = -torch.log(torch.rand(count, generator=rng, dtype=torch.float64)) * (torch.rand(count, generator=rng) < 0.2) * 5
    unknown = torch.randint(9, 60, (count,), generator=rng)
    nats = STEEP(torch.stack([shared, strongest, entropy, rank.double(), unknown.double()], dim=1)) * noise
    whole = torch.arange(count)
    return Members(whole, whole, rank, whole, nats, nats, entropy, shared, strongest, unknown)


def test_a_fit_finds_the_map_that_made_the_losses() -> None:
    charge, fresh = fit_charge(invented(12_000)), invented(seed=1)
    truth, found = predicted(STEEP, fresh), predicted(charge, fresh)
    assert float(found.sum() / truth.sum()) == pytest.approx(1, abs=0.12)
    assert float(torch.corrcoef(torch.stack([truth, found]))[0, 1]) > 0.95
    for quarter in truth.argsort().chunk(4):
        assert float(found[quarter].mean() / truth[quarter].mean()) == pytest.approx(1, abs=0.3)


def test_totals_agree_where_it_was_fitted() -> None:
    members = invented()
    assert float(predicted(fit_charge(members), members).sum()) == pytest.approx(float(members.nats.sum()), rel=1e-9)


def test_a_search_that_gets_lost_leaves_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(self: torch.optim.LBFGS, closure: object) -> None:
        for parameter in self.param_groups[0]["params"]:
            parameter.data.fill_(torch.nan)

    monkeypatch.setattr(torch.optim.LBFGS, "step", lost)
    members = invented()
    charge = fit_charge(members)
    assert float(predicted(charge, members).sum()) == pytest.approx(float(members.nats.sum()), rel=1e-9)


def test_a_charge_rises_with_dependence_and_the_first_is_free() -> None:
    charge = fit_charge(invented())
    base = torch.tensor([0.3, 0.2, 0.4, 3.0, 20.0], dtype=torch.float64)
    for column in range(len(RISING)):
        grid = base.repeat(50, 1)
        grid[:, column] = torch.linspace(0.01, 8, 50, dtype=torch.float64)
        costs = charge(grid)
        assert (costs.diff() >= -1e-12).all()
        assert (costs > 0).all()
    early, late = charge(torch.stack([base, base.index_fill(0, torch.tensor([4]), 50.0)])).tolist()
    assert late < early  # as in the map that made the losses
    assert charge(base.index_fill(0, torch.tensor([3]), 0)[None]).tolist() == [0]


def test_a_budget_is_what_a_pass_loses() -> None:
    """Lost = 3 * charged ** 0.8, but for one point that is hardly known."""
    points = [(b, 3 * b**0.8, 0.01 * b) for b in (0.01, 0.1, 1.0)] + [(0.03, 9.0, 9.0)]
    charge = fit_budget(STEEP, points)
    assert 3 * charge.allowed(0.2) ** 0.8 == pytest.approx(0.2, rel=0.01)
    assert charge.allowed(0.0) == 0
    assert fit_budget(STEEP, [(0.1, 0.0, 0.0)]) == STEEP  # nothing was lost
    alone = fit_budget(STEEP, [(0.1, 0.2, 0.01)])
    assert alone.allowed(0.2) == pytest.approx(0.1)
    assert alone.slope == 1
    assert fit_budget(STEEP, [(0.1, 0.2, 0.01), (0.2, 0.1, 0.01)]).slope == 0.5  # never falls


def test_budgets_are_true_where_what_is_lost_bends() -> None:
    """On sudoku little is lost below 0.02 nats a pass and much above: no line tells both."""
    truth = {0.014: 0.0012, 0.027: 0.013, 0.077: 0.073, 0.24: 0.2}
    charge = fit_budget(STEEP, [(allowed, lost, 0.03 * lost) for allowed, lost in truth.items()])
    for allowed, lost in truth.items():
        assert charge.allowed(lost) == pytest.approx(allowed, rel=0.05)
    between = charge.allowed(math.sqrt(0.073 * 0.2))
    assert between == pytest.approx(math.sqrt(0.077 * 0.24), rel=0.05)  # linear between logarithms
    grid = [charge.allowed(0.001 * 1.3**n) for n in range(30)]
    assert all(a < b for a, b in pairwise(grid))
    assert charge.allowed(2.0) / charge.allowed(1.0) == pytest.approx(2 ** (1 / charge.slope))  # beyond them: the line's slope


def test_a_curve_through_what_is_hardly_known_is_smoother_than_the_noise() -> None:
    """Budgets are true, but for noise of 30 %: what is allowed strays from them by less than each point does."""
    rng, strays, allowed = torch.Generator().manual_seed(0), list[float](), [0.01 * 3**n for n in range(5)]
    for _ in range(200):
        noise = torch.randn(5, generator=rng, dtype=torch.float64).mul(0.3).exp().tolist()
        charge = fit_budget(STEEP, [(a, a * e, 0.3 * a * e) for a, e in zip(allowed, noise, strict=True)])
        strays += [math.log(charge.allowed(a) / a) ** 2 for a in allowed]
        slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(charge.levels)]
        assert all(0.5 - 1e-9 <= slope <= 6 + 1e-9 for slope in slopes)
    assert math.sqrt(sum(strays) / len(strays)) < 0.85 * 0.3


def test_a_calibration_survives_its_description() -> None:
    charge = fit_charge(invented())
    for one in (charge, replace(charge, slope=1.3, levels=((-4.0, -5.0), (-3.0, -3.5), (-1.0, -1.0)))):
        assert Calibration.from_about(json.loads(json.dumps(one.about()))) == one
    older = {name: value for name, value in charge.about().items() if name != "levels"}
    assert Calibration.from_about(older) == charge


def test_measurements_of_a_charge_are_found_under_its_levels() -> None:
    model = replace(load("markov"), calibration=STEEP)
    line = resolved("mi-bound:charge=calibrated,budget=0.1", model)
    assert "levels" not in line["charge"]  # as before there were any
    curve = [fit_budget(STEEP, [(a, a**power, 0.01) for a in (0.1, 0.2, 0.3)]) for power in (1.1, 1.2)]
    found = [resolved("mi-bound:charge=calibrated,budget=0.1", replace(model, calibration=one)) for one in curve]
    assert line != found[0] != found[1] != line


def test_the_calibrated_rule_spends_its_budget_by_the_charge() -> None:
    some = situation(rows=60, dense=True)
    for budget in (0.0, 0.05, 0.3, 5.0):
        scaled = replace(STEEP, offset=0.3, slope=0.9)
        selection = MIBound(Given(some.mi), budget, charge=scaled)(some.turn())
        for row in range(60):
            order = selection.order[row].masked_fill(~selection.chosen[row], 99).argsort()[: int(selection.chosen[row].sum())]
            spent = 0.0
            for n, k in enumerate(order.tolist()):
                known = some.mi[row, k, order[:n]]
                most, unknown = float(known.max()) if n else 0.0, int(some.masked[row].sum())
                spent += float(STEEP(torch.tensor([[float(known.sum()), most, float(some.entropies[row, k]), n, unknown]])))
            assert spent <= scaled.allowed(budget) + 1e-6
        assert selection.chosen.any(1).eq(some.masked.any(1)).all()
    everything = MIBound(Given(some.mi), 1e9, charge=STEEP)(some.turn())
    assert torch.equal(everything.chosen, some.masked)


def test_weights_and_penalties_still_make_a_calibrated_rule_shy() -> None:
    some = situation(rows=60)

    def size(**knobs: float) -> int:
        return int(MIBound(Given(some.mi), 0.2, charge=STEEP, **knobs)(some.turn()).chosen.sum())

    assert size(penalty=8.0) < size() < size(penalty=0.1)
    assert size(entropy_weight=0.5) < size()


def test_what_pairs_cannot_see_is_learnt() -> None:
    """Three XORed bits share nothing in pairs and ln 2 together: pairwise charges fill them at once, calibrated ones do not."""
    model = pairmi.calibrate(load("xor"), "...", sequences=16)
    empty = torch.full((3,), 2)
    assert exact_price(model.backbone, empty, rule("mi-bound:budget=0.1", model)).nats == pytest.approx(math.log(2))
    careful = exact_price(model.backbone, empty, rule("mi-bound:budget=0.1,charge=calibrated", model))
    assert careful.nats < 1e-9
    assert careful.passes == 2
    bold = exact_price(model.backbone, empty, rule("mi-bound:budget=0.8,charge=calibrated", model))
    assert bold.passes == 1


@pytest.mark.parametrize("world", ["sudoku4", "markov"])
def test_predictions_are_reliable_on_other_draws(world: str) -> None:
    model = load(world)
    canvases, mi = [torch.full((model.length,), model.vocab.size)] * 64, rule("mi-bound:floor=0", model).mi
    charge = calibrate(model, canvases, mi, calibrated_rule, (0.05, 0.2, 0.5))
    found = reliability(model, canvases, mi, calibrated_rule, charge, (0.2, 0.5))
    assert found[1].predicted == pytest.approx(found[1].measured, rel=0.25)
    if world == "sudoku4":  # a short chain has few sets to choose from, which lose much less than a budget or much more
        assert found[0].measured == pytest.approx(0.2, rel=0.3)
        assert found[0].error < 0.05


def test_too_little_to_learn_from_is_named() -> None:
    (found,) = measure(load("xor"), [torch.full((3,), 2)], {"k": TopK(3)})
    with pytest.raises(PairmiError, match=r"2 positions were filled together with others and lost 0\.69 nats, too little to learn from"):
        fit_charge(found.members)
    with pytest.raises(PairmiError, match="rounds=1: must be at least 2"):
        calibrate(load("xor"), [torch.full((3,), 2)], Given(torch.zeros(1, 3, 3)), calibrated_rule, (0.1,), rounds=1)


def test_a_damaged_calibration_is_named() -> None:
    with pytest.raises(
        PairmiError, match="expected rising knots for each of shared, strongest, entropy, size, unknown, rises >= 0 for the first 4"
    ):
        Calibration(0.0, ((0.0, 1.0),), ((-1.0,),))
    with pytest.raises(PairmiError, match="and rising levels; calibrate again"):
        replace(STEEP, levels=((-2.0, -1.0), (-1.0, -3.0)))
    with pytest.raises(PairmiError, match="expected the features shared, strongest, entropy, size, unknown, got None; calibrate again"):
        Calibration.from_about({})


def test_where_tables_shift_only_what_is_left_is_charged() -> None:
    """At a budget coupled passes lose about as much as plain ones, and are fewer: exact tables in an exact world, over all branches."""
    model = Model(tabular(random_table(8, 2, generator(1), sparsity=0.6, sharpness=1.5)))
    canvases, mi = [torch.full((8,), 2)] * 64, rule("mi-bound:floor=0", model).mi
    for budget, passes in ((0.05, 0.75), (0.2, 0.95)):
        found = list[ExactPrice]()
        for chosen in (calibrated_rule, coupled_rule(ProbedTables())):
            charge = calibrate(model, canvases, mi, chosen, (0.02, 0.05, 0.2, 0.5))
            found.append(exact_price(model.backbone, canvases[0], chosen(mi, charge, budget)))
            assert found[-1].nats / found[-1].passes == pytest.approx(budget, rel=0.4)
        assert found[1].passes < passes * found[0].passes


def test_a_calibration_is_for_its_way_of_drawing() -> None:
    model = load("markov")
    plain = pairmi.calibrate(model, "." * model.length, sequences=8)
    with pytest.raises(PairmiError, match=r"^rule '.*': model 'markov' has no calibration for draw=probed; make one with pairmi.calibrate"):
        rule("mi-bound:charge=calibrated,draw=probed", plain)
    both = pairmi.calibrate(plain, "." * model.length, sequences=8, draw="coupled")  # without learnt tables: exact ones
    marginal, coupled = (rule(f"mi-bound:charge=calibrated{way}", both) for way in ("", ",draw=probed"))
    assert marginal.charge == plain.calibration
    assert coupled.rule.charge == both.residuals["probed"] != plain.calibration
