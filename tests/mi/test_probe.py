import math
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pairmi.backbones.tabular import Tabular
from pairmi.counting import Counting
from pairmi.draw import Streams
from pairmi.info import entropy, pairs
from pairmi.mi.probe import Form, Probe, Probed
from pairmi.tasks.tables import World, independent, parity, random_table, sudoku4
from pairmi.types import Backbone, PairmiError, PairwiseMI, Prediction, Tokens
from worlds import Incoherent, Listening, Recipe, generator, many, recipes, tabular, total_correlation, unknown

FORMS: tuple[Form, ...] = ("joint", "kl", "entropy")  # of mutual information
FLOORS = (1e-4, 0.01, 0.1, 0.5, 2.0, 10.0)
FIELDS = ("matrix", "bound", "directed", "inconsistency", "entropies", "conditional_entropies", "rows")


def measured(backbone: Backbone, tokens: Tokens, form: Form = "joint", floor: float = 0.0, batch_rows: int = 256) -> Probed:
    return Probe(form, floor, batch_rows).measure(backbone(tokens), backbone)


def close(one: torch.Tensor, other: torch.Tensor, tolerance: float = 1e-9) -> bool:
    return one.shape == other.shape and bool(((one - other).abs() <= tolerance).all())


def plain_probe(backbone: Backbone, canvas: list[int], form: Form) -> list[list[float]]:
    """The definition, word by word: the directed matrix of one canvas."""

    def ask(context: list[int]) -> list[list[float]]:
        return backbone(torch.tensor([context])).log_probs[0].exp().tolist()

    def surprise(p: list[float]) -> float:
        return -sum(x * math.log(x) for x in p if x > 0)

    def divergence(q: list[float], p: list[float]) -> float:
        return sum(x * math.log(x / y) for x, y in zip(q, p, strict=True) if x > 0)

    size, p = backbone.vocab.size, ask(canvas)
    directed = [[0.0] * len(canvas) for _ in canvas]
    masked = [i for i, symbol in enumerate(canvas) if symbol == size]
    for i in masked:
        answers = [(p[i][v], ask([*canvas[:i], v, *canvas[i + 1 :]])) for v in range(size) if p[i][v] > 0]
        for j in (j for j in masked if j != i):
            if form == "joint":
                mixture = [sum(weight * q[j][w] for weight, q in answers) for w in range(size)]
                directed[i][j] = sum(weight * divergence(q[j], mixture) for weight, q in answers)
            elif form == "kl":
                directed[i][j] = sum(weight * divergence(q[j], p[j]) for weight, q in answers)
            elif form == "tv":
                apart = [sum(abs(x - y) for x, y in zip(q[j], p[j], strict=True)) / 2 for _, q in answers]
                directed[i][j] = sum(weight * far for (weight, _), far in zip(answers, apart, strict=True))
            else:
                directed[i][j] = surprise(p[j]) - sum(weight * surprise(q[j]) for weight, q in answers)
    return directed


@many(100)
@given(recipes(), st.sampled_from((*FORMS, "tv")), st.booleans())
def test_the_fast_probe_is_the_plain_one(recipe: Recipe, form: Form, coherent: bool) -> None:
    model, tokens = recipe.coherent() if coherent else recipe.incoherent()
    plain = torch.tensor([plain_probe(model, canvas, form) for canvas in tokens.tolist()], dtype=torch.float64)
    full = measured(model, tokens, form)
    assert close(full.directed, plain)
    assert close(full.matrix, (plain + plain.transpose(1, 2)) / 2)
    assert (full.bound == 0).all()


@many(700)
@given(recipes())
def test_the_full_probe_is_the_analytic_mutual_information_in_all_forms(recipe: Recipe) -> None:
    table, tokens = recipe.coherent()
    truth = table.mutual_information(tokens)
    for form in FORMS:
        full = measured(table, tokens, form)
        assert close(full.matrix, truth)
        assert close(full.directed, full.directed.transpose(1, 2))  # no asymmetry
        assert full.inconsistency.max() < 1e-9


@many(300)
@given(recipes())
def test_entropies_and_conditional_entropies_are_the_analytic_ones(recipe: Recipe) -> None:
    table, tokens = recipe.coherent()
    tokens = tokens[table.consistent(tokens).any(1)]
    masked, joint = tokens == recipe.size, table.pair_marginals(tokens)
    single = torch.where(masked, entropy(table(tokens).log_probs), 0)
    both = -torch.xlogy(joint, joint).sum((2, 4))
    full = measured(table, tokens)
    assert close(full.entropies, single)
    assert close(full.conditional_entropies, torch.where(pairs(masked), both - single[:, :, None], 0))  # H(i, j) - H(i)
    assert (full.matrix <= torch.minimum(single[:, :, None], single[:, None, :]) + 1e-9).all()


@many(400)
@given(recipes())
def test_the_forms_differ_by_the_inconsistency(recipe: Recipe) -> None:
    model, tokens = recipe.incoherent()
    joint, kl = measured(model, tokens, "joint"), measured(model, tokens, "kl")
    assert close(kl.directed, joint.directed + joint.inconsistency)
    assert close(kl.inconsistency, joint.inconsistency)
    assert (joint.directed >= 0).all()
    assert (kl.directed >= joint.directed - 1e-9).all()


def test_a_model_that_contradicts_itself_is_found_out() -> None:
    model = Incoherent(3, 3, seed=0, sharpness=2.0)
    found = measured(model, unknown(model))
    apart = ~torch.eye(3, dtype=torch.bool)
    assert found.inconsistency[0][apart].min() > 0.01
    assert (found.directed - found.directed.transpose(1, 2)).abs()[0][apart].min() > 0.001


@many(600)
@given(recipes(), st.sampled_from((*FORMS, "tv")), st.sampled_from(FLOORS))
def test_pruning_of_a_consistent_model_stays_within_its_bound(recipe: Recipe, form: Form, floor: float) -> None:
    assert_certified(*recipe.coherent(), form, floor)


@many(600)
@given(recipes(), st.sampled_from((*FORMS, "tv")), st.sampled_from(FLOORS))
def test_pruning_of_an_inconsistent_model_stays_within_its_bound(recipe: Recipe, form: Form, floor: float) -> None:
    assert_certified(*recipe.incoherent(), form, floor)


def assert_certified(model: Backbone, tokens: Tokens, form: Form, floor: float) -> None:
    full, pruned = measured(model, tokens, form), measured(model, tokens, form, floor)
    assert ((pruned.matrix - full.matrix).abs() <= pruned.bound + 1e-9).all()
    assert (pruned.bound >= 0).all()
    assert (pruned.bound <= floor + 1e-12).all()
    assert (full.bound == 0).all()
    assert (pruned.rows <= full.rows).all()


def test_the_default_floor_saves_more_the_more_peaked_the_world_and_its_bound_says_something(
    record_property: Callable[[str, object], None],
) -> None:
    saved = []
    for sharpness in (4.0, 6.0, 10.0, 20.0):
        tables = [tabular(random_table(4, 4, generator(seed), sharpness=sharpness)) for seed in range(60)]
        full = [measured(table, unknown(table)) for table in tables]
        pruned = [Probe().measure(table(unknown(table)), table) for table in tables]
        bounds = torch.cat([one.bound[pairs(unknown(tables[0]) == 4)] for one in pruned])
        errors = torch.stack([one.matrix - other.matrix for one, other in zip(pruned, full, strict=True)]).abs()
        saved.append(1 - sum(int(one.rows) for one in pruned) / (60 * 4 * 4))  # of the N V rows of the unpruned probe
        certain = torch.cat([one.entropies for one in full]).median()
        figures = (
            f"median bound {bounds.median():.4f}, largest {bounds.max():.4f}, largest error {errors.max():.4f}, rows saved {saved[-1]:.0%}"
        )
        record_property(f"sharpness {sharpness:g}, median entropy {certain:.2f}", figures)
        print(f"sharpness {sharpness:g}, median entropy {certain:.2f}: {figures}")
        assert bounds.max() <= 0.01
        assert errors.max() <= bounds.max() + 1e-9
    assert saved == sorted(saved)
    assert saved[-1] > 0.5


@many(150)
@given(recipes(), st.sampled_from(FORMS), st.sampled_from((0.0, 0.05)), st.randoms(use_true_random=False))
def test_permuted_positions_permute_the_matrix(recipe: Recipe, form: Form, floor: float, random: Random) -> None:
    table, tokens = recipe.coherent()
    order = torch.tensor(random.sample(range(recipe.length), recipe.length))
    moved = Tabular(table.support[:, order], table.weights, table.vocab.symbols)
    one, other = measured(table, tokens, form, floor), measured(moved, tokens[:, order], form, floor)
    assert close(other.matrix, one.matrix[:, order][:, :, order])
    assert close(other.bound, one.bound[:, order][:, :, order])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(5))
def test_independent_positions_share_nothing(form: Form, seed: int) -> None:
    marginals = torch.randn(3, 4, generator=generator(seed), dtype=torch.float64).softmax(-1)
    everything = independent(3, 4)
    weights = torch.stack([marginals[i, everything.support[:, i]] for i in range(3)]).prod(0)
    table = tabular(World(everything.support, weights, everything.symbols))
    assert measured(table, unknown(table), form).matrix.abs().max() < 1e-9


@pytest.mark.parametrize("form", FORMS)
def test_xor_shares_nothing_in_pairs_until_one_is_known(form: Form) -> None:
    table = tabular(parity(3))
    assert measured(table, unknown(table), form).matrix.abs().max() < 1e-9
    assert total_correlation(table, unknown(table), torch.ones(1, 3, dtype=torch.bool)).item() == pytest.approx(math.log(2))
    assert measured(table, torch.tensor([[1, 2, 2]]), form).matrix[0, 1, 2].item() == pytest.approx(math.log(2))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("floor", [0.0, 0.02])
@pytest.mark.parametrize("model", [tabular(random_table(4, 3, generator(0), 0.2, 2.0)), Incoherent(4, 3, 0, 2.0)], ids=["table", "mock"])
def test_results_depend_neither_on_the_batch_size_nor_on_batch_mates(model: Backbone, floor: float, form: Form) -> None:
    tokens = torch.tensor([[3, 3, 3, 3], [3, 1, 3, 3], [0, 1, 2, 0], [3, 3, 0, 3], [3, 3, 3, 3]])
    reference = measured(model, tokens, form, floor)
    cut = [measured(model, tokens, form, floor, batch_rows) for batch_rows in (1, 7)]
    alone = [measured(model, tokens[row : row + 1], form, floor) for row in range(5)]
    turned = measured(model, tokens.flip(0), form, floor)
    for field in FIELDS:
        expected = getattr(reference, field)
        assert all(close(getattr(other, field), expected, 1e-12) for other in cut)
        assert close(torch.cat([getattr(one, field) for one in alone]), expected, 1e-12)
        assert close(getattr(turned, field).flip(0), expected, 1e-12)


@pytest.mark.parametrize("batch_rows", [1, 7, 256])
@pytest.mark.parametrize("floor", [0.0, 0.1])
def test_reported_rows_are_what_the_meter_saw(batch_rows: int, floor: float) -> None:
    listening = Listening(tabular(sudoku4()))
    meter = Counting(listening)
    tokens = unknown(meter, 3)
    tokens[1, :6] = listening.backbone.support[0, :6]
    prediction = meter(tokens)
    found = Probe("joint", floor, batch_rows).measure(prediction, meter)
    assert meter.rows == 3 + int(found.rows.sum())
    assert max(listening.heard[1:]) <= batch_rows
    assert found.rows[0] == found.rows[2] == 16 * 4
    assert 0 < found.rows[1] < 10 * 4


@many(200)
@given(recipes(), st.sampled_from(FORMS), st.sampled_from((0.0, 0.1)), st.booleans(), st.integers(0, 99))
def test_what_some_positions_tell_stays_within_its_bound(recipe: Recipe, form: Form, floor: float, coherent: bool, seed: int) -> None:
    model, tokens = recipe.coherent() if coherent else recipe.incoherent()
    prediction, probe = model(tokens), Probe(form, floor)
    sources = torch.rand(tokens.shape, generator=generator(seed)) < 0.5
    full, whole, some = measured(model, tokens, form), probe.measure(prediction, model), probe.measure(prediction, model, sources)
    assert ((some.matrix - full.matrix).abs() <= some.bound + 1e-9).all()
    assert close(some.conditional_entropies[sources], whole.conditional_entropies[sources])
    unseen = prediction.masked & ~sources
    assert (some.inconsistency[unseen] == 0).all()
    assert (some.rows <= whole.rows).all()
    assert torch.equal(probe.measure(prediction, model, sources | probe.settled(prediction)).rows, some.rows)  # settled ones cost nothing


def test_nothing_masked_asks_nothing() -> None:
    listening = Listening(tabular(parity(3)))
    prediction = listening(torch.tensor([[0, 1, 1]]))
    found = Probe("kl", 0.0).measure(prediction, listening)
    assert listening.heard == [1]
    assert found.rows.tolist() == [0]
    assert all((getattr(found, field) == 0).all() for field in FIELDS)


def test_as_an_estimate_it_gives_the_matrix_not_below_zero() -> None:
    model = Incoherent(3, 3, seed=0, sharpness=2.0)
    raw = measured(model, unknown(model), "entropy").matrix
    assert raw.min() < -0.01  # the paper's form, on a model that contradicts itself
    probe = Probe("entropy", 0.0)
    assert isinstance(probe, PairwiseMI)
    assert torch.equal(probe(model(unknown(model)), model, Streams(0, torch.arange(1))), raw.clamp_min(0))


class Single(Listening):
    """A backbone whose log-probabilities are rounded to float32."""

    def __call__(self, tokens: Tokens) -> Prediction:
        prediction = super().__call__(tokens)
        return replace(prediction, log_probs=prediction.log_probs.float())


@pytest.mark.parametrize("form", FORMS)
def test_the_full_probe_of_a_float32_model_with_impossible_symbols_has_no_bound(form: Form) -> None:
    for seed in range(6):
        table = tabular(random_table(3, 4, generator(seed), sparsity=0.8, sharpness=2.0))
        full = measured(Single(table), unknown(table), form)
        assert (full.bound == 0).all()
        assert close(full.matrix, table.mutual_information(unknown(table)), 1e-6)


class Converted(Incoherent):
    """Rules the second symbol out until it is told anything, and then believes in it."""

    def __call__(self, tokens: Tokens) -> Prediction:
        told = (tokens < 2).any(1)[:, None, None]
        probs = torch.where(told, torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0])).double().expand(-1, self.length, -1)
        return Prediction(tokens, probs.log(), probs)


def test_an_infinite_divergence_is_certain() -> None:
    model = Converted(2, 2, seed=0, sharpness=0.0)
    found = measured(model, unknown(model), "kl")
    assert found.matrix.tolist() == [[[0, math.inf], [math.inf, 0]]]
    assert (found.bound == 0).all()


def test_refuses_an_unknown_form(unchecked: None) -> None:
    with pytest.raises(PairmiError, match=r"Probe\(form='both'\): form must be joint, kl, tv, entropy"):
        Probe("both")


@pytest.mark.parametrize(("floor", "batch_rows"), [(-0.1, 256), (math.nan, 256), (0.01, 0)])
def test_refuses_impossible_settings(floor: float, batch_rows: int) -> None:
    with pytest.raises(PairmiError, match=rf"Probe\(floor={floor}, batch_rows={batch_rows}\): floor must be >= 0 nats and batch_rows >= 1"):
        Probe("joint", floor, batch_rows)
