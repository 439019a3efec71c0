"""Probing by draws against the full probe: unbiased, with honest errors, never worse than plain draws, whatever the batch."""

import math
from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import pairmi
from pairmi.cli import main
from pairmi.counting import Counting
from pairmi.draw import Streams
from pairmi.info import pairs
from pairmi.mi.probe import Probe
from pairmi.mi.sampled import MOST, Sampled, SampledProbe, interval, stratified
from pairmi.model import Model
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import looks_at_pairs, probing, rule
from pairmi.types import Backbone, PairmiError, Prediction, Tokens, Vocab
from test_batch_invariance import CANVASES, MODEL
from worlds import Incoherent, Listening, generator, many, unknown

WORLD = Incoherent(4, 6, 3, 1.5)
FORMS = ("kl", "tv")


def drawn(
    backbone: Backbone, tokens: Tokens, probe: SampledProbe, index: torch.Tensor | None = None, each: int = 2, seed: int = 0
) -> Sampled:
    meter, numbers = Counting(backbone, 10**6), torch.arange(len(tokens)) if index is None else index
    return probe.measure(meter(tokens), meter, Streams(seed, numbers), each=each)


def full(backbone: Backbone, tokens: Tokens, form: str) -> torch.Tensor:
    return Probe(form, 0.0).measure(backbone(tokens), backbone).directed


@dataclass(frozen=True)
class Design:
    """What `stratified` must do, from its description: exact symbols, and strata of the rest (draws, distribution over the symbols)."""

    exact: list[int]
    mass: float
    strata: list[tuple[int, torch.Tensor]]


def described(p: torch.Tensor, draws: int, each: int) -> Design:
    likely, size = p.argsort(descending=True, stable=True).tolist(), int((p > 0).sum())
    if size <= draws:
        return Design(likely[:size], 0.0, [])
    cost, best = math.inf, 0
    for exact in range(draws):
        tail = float(1 - p[likely[:exact]].sum())
        if (draws - exact >= each or not exact) and exact <= draws * (1 - tail) + 1e-12 and tail**2 / (draws - exact) < cost - 1e-15:
            cost, best = tail**2 / (draws - exact), exact
    rest = p.clone()
    rest[likely[:best]] = 0
    mass, count = float(rest.sum()), draws - best
    upper = rest.cumsum(0) / mass * count  # in units of one draw
    lower = torch.cat([upper.new_zeros(1), upper[:-1]])
    strata, start = [], 0
    while start < count:
        size = each if count - start >= 2 * each else count - start
        strata.append((size, (upper.clamp(max=start + size) - lower.clamp(min=start)).clamp_min(0) / size))
        start += size
    return Design(likely[:best], mass, strata)


@st.composite
def tables(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Probabilities from flat to peaked, some of them 0; any values; a number of draws."""
    size, seed, sharpness = draw(st.integers(2, 12)), draw(st.integers(0, 2**32)), draw(st.sampled_from([0.0, 0.5, 2.0, 6.0]))
    rng = generator(seed)
    p = torch.softmax(sharpness * torch.randn(size, generator=rng, dtype=torch.float64), 0)
    p = torch.where(torch.rand(size, generator=rng) < draw(st.sampled_from([0.0, 0.3])), 0, p)
    p[0] += 0.01
    values = torch.randn(size, generator=rng, dtype=torch.float64) ** draw(st.sampled_from([1, 3]))
    return p / p.sum(), values, draw(st.integers(1, 14))


@many(3000)
@given(tables(), st.sampled_from([1, 2]))
def test_stratified_draws_are_unbiased_and_never_worse_than_plain_ones(table: tuple[torch.Tensor, torch.Tensor, int], each: int) -> None:
    p, values, draws = table
    design = described(p, draws, each)
    count = sum(size for size, _ in design.strata)
    mean = float((p * values).sum())
    plain = float((p * (values - mean) ** 2).sum()) / draws
    found, variance = float((p * values)[design.exact].sum()), 0.0
    for size, q in design.strata:
        middle = float((q * values).sum())
        found += design.mass * size / count * middle
        variance += (design.mass / count) ** 2 * size * float((q * (values - middle) ** 2).sum())
    assert found == pytest.approx(mean, abs=1e-9)
    assert variance <= plain * (1 + 1e-9) + 1e-15


@many(300)
@given(tables(), st.sampled_from([1, 2]))
def test_the_draws_follow_that_design(table: tuple[torch.Tensor, torch.Tensor, int], each: int) -> None:
    p, _, draws = table
    design, grid = described(p, draws, each), 2000
    uniform = ((torch.arange(grid, dtype=torch.float64) + 0.5) / grid)[:, None].expand(-1, draws)
    found = stratified(p.log().expand(grid, -1), uniform, each)
    exact = len(design.exact)
    assert sorted(found.symbols[0, :exact].tolist()) == sorted(design.exact)
    torch.testing.assert_close(found.weights[0, :exact], p[found.symbols[0, :exact]])
    assert (found.weights.sum(1) - 1).abs().max() < 1e-9
    slots = [(q, size) for size, q in design.strata for _ in range(size)]
    for slot, (q, size) in enumerate(slots, exact):
        often = torch.bincount(found.symbols[:, slot], minlength=len(p)) / grid
        assert (often - q).abs().max() <= 2 / grid
        assert (p[found.symbols[:, slot]] > 0).all()
        assert (found.count[:, slot] == size).all()
    assert (found.weights[:, exact + len(slots) :] == 0).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("draws", "each"), [(1, 1), (2, 1), (2, 2), (3, 2), (5, 2)])
def test_the_mean_over_many_seeds_is_the_full_form_in_every_entry(form: str, draws: int, each: int) -> None:
    tokens = unknown(WORLD, 3000)
    found, truth = drawn(WORLD, tokens, SampledProbe(form, draws), each=each), full(WORLD, tokens[:1], form)[0]
    off = found.directed.mean(0) - truth
    error = found.directed.std(0) / len(tokens) ** 0.5
    assert (off.abs() <= 4 * error + 1e-12).all()
    assert error[0, 1] > 0
    if each == 2:  # the variance is estimated without bias, too
        ratio = found.directed_error.square().mean(0)[0, 1] / found.directed.var(0)[0, 1]
        assert 0.9 < float(ratio) < 1.1


def test_intervals_cover_what_they_promise() -> None:
    rng = generator(0)
    log_probs = torch.log_softmax(torch.randn(300, generator=rng, dtype=torch.float64), 0)
    beliefs = torch.log_softmax(torch.randn(301, 2, 300, generator=rng, dtype=torch.float64), -1)

    class Pair:
        vocab, length = Vocab(tuple(map(chr, range(1000, 1300))), "."), 2

        def __call__(self, tokens: Tokens) -> Prediction:
            answers = beliefs[tokens[:, 0]].clone()
            answers[:, 0] = log_probs
            return Prediction(tokens, answers, answers)

    tokens = unknown(Pair(), 4000)
    truth = float(full(Pair(), tokens[:1], "kl")[0, 0, 1])
    found = drawn(Pair(), tokens, SampledProbe("kl", 48))
    covered = ((found.directed[:, 0, 1] - truth).abs() <= 1.96 * found.directed_error[:, 0, 1]).double().mean()
    assert 0.92 < float(covered) < 0.97  # from two dozen strata


@pytest.mark.parametrize("draws", [1, 2, 3, 5])
def test_rows_are_one_and_n_times_k(draws: int) -> None:
    tokens = torch.tensor([[6, 6, 6, 6], [6, 0, 6, 6], [6, 0, 1, 2]])
    found = drawn(WORLD, tokens, SampledProbe("kl", draws))
    assert found.rows.tolist() == [4 * draws, 3 * draws, draws]
    heard = Listening(WORLD)
    pairmi.mutual_information(Model(heard), [tokens[1]], draws=draws)
    assert sum(heard.heard) == 1 + 3 * draws


@pytest.mark.parametrize("form", FORMS)
def test_as_many_draws_as_symbols_are_the_full_probe(form: str) -> None:
    tokens = torch.tensor([[6, 6, 6, 6], [6, 0, 6, 6]])
    found = drawn(WORLD, tokens, SampledProbe(form, 9))
    torch.testing.assert_close(found.directed, full(WORLD, tokens, form))
    assert (found.error == 0).all()
    assert found.rows.tolist() == [24, 18]


def test_one_draw_has_no_error_and_one_side_is_taken_as_it_is() -> None:
    tokens = unknown(WORLD)
    assert (drawn(WORLD, tokens, SampledProbe("kl", 1)).error[pairs(tokens == 6)] == torch.inf).all()
    prediction, sources = WORLD(tokens), torch.tensor([[True, False, False, True]])
    found = SampledProbe("kl", 2).measure(prediction, WORLD, Streams(0, torch.arange(1)), sources)
    both, one, neither = found.matrix[0, 0, 3], found.matrix[0, 0, 1], found.error[0, 1, 2]
    assert both == 0.5 * (found.directed[0, 0, 3] + found.directed[0, 3, 0])
    assert one == found.directed[0, 0, 1] == found.matrix[0, 1, 0]
    assert neither == torch.inf
    assert found.error[0, 0, 1] == found.directed_error[0, 0, 1]
    assert found.rows.tolist() == [4]


@pytest.mark.parametrize("probe", [SampledProbe("kl", 3, batch_rows=50), SampledProbe("tv", 2, error=0.002, batch_rows=64)])
def test_no_bit_depends_on_the_batch(probe: SampledProbe) -> None:
    tokens, index = CANVASES[:24], torch.arange(24)
    whole = drawn(MODEL, tokens, probe)
    assert whole.rows.unique().numel() > 3
    order = torch.randperm(24, generator=generator(2))
    mixed = drawn(MODEL, tokens[order], probe, order)
    assert torch.equal(mixed.matrix, whole.matrix[order])
    assert torch.equal(mixed.error, whole.error[order])
    for some in index.split(5):
        part = drawn(MODEL, tokens[some], probe, some)
        assert torch.equal(part.matrix, whole.matrix[some])
        assert torch.equal(part.rows, whole.rows[some])
    assert not torch.equal(drawn(MODEL, tokens, probe, seed=1).matrix, whole.matrix)


def test_more_is_drawn_until_the_error_is_there() -> None:
    tokens = unknown(WORLD, 200)
    rough, found = (drawn(WORLD, tokens, SampledProbe("kl", 2, error)) for error in (0.0, 0.1))
    assert rough.error.max() > 0.1 >= found.error.max()
    assert (found.rows >= rough.rows).all()
    assert found.rows.unique().numel() > 3
    assert MOST > 2 * 6  # where every symbol was looked at, nothing is left to draw
    exact = drawn(WORLD, tokens[:1], SampledProbe("kl", 2, 1e-9))
    torch.testing.assert_close(exact.directed, full(WORLD, tokens[:1], "kl"))


@dataclass(frozen=True)
class Vast:
    """As many symbols as a large text model has; a token moves the logits of the position behind it."""

    length: int = 6

    @property
    def vocab(self) -> Vocab:
        return Vocab(tuple(chr(0x20000 + n) for n in range(126_464)), ".")

    def __call__(self, tokens: Tokens) -> Prediction:
        before = torch.roll(tokens, 1, 1)[:, :, None].float()
        logits = torch.sin(0.001 * before + torch.arange(126_464) * 0.01) * 3
        return Prediction(tokens, torch.log_softmax(logits, -1), logits[:, :, :1])


def test_a_large_vocabulary_is_drawn_from_in_small_pieces() -> None:
    heard = Listening(Vast())
    heard.vocab = heard.vocab  # made once
    tokens = torch.full((1, 6), 126_464)
    tokens[0, 4:] = 7
    prediction = heard(tokens)
    found = SampledProbe("kl", 4).measure(prediction, heard, Streams(0, torch.arange(1)))
    assert sum(heard.heard) == 17
    assert max(heard.heard) <= 5
    assert found.directed[0, 0, 1] > 0
    assert found.directed[0, 0, 2] == 0
    assert torch.isfinite(found.matrix).all()


@pytest.mark.parametrize("name", [name for name in CATALOGUE if looks_at_pairs(name)])
def test_every_rule_can_draw(name: str) -> None:
    world = pairmi.load("sudoku4")
    result = pairmi.decode(world, "." * 16, f"{name}:mi=probe,draws=2", seed=3)
    assert world.task.judge(torch.full((16,), 4), result.tokens) is not None
    assert 0 < result.probe_rows <= 2 * 16 * result.passes


def test_specifications_become_probes() -> None:
    assert probing() == Probe()
    assert probing("kl", 0.0) == Probe("kl", 0.0)
    assert probing(draws=4) == SampledProbe("kl", 4)
    assert probing("tv", None, 3, 0.1, 8) == SampledProbe("tv", 3, 0.1, 8)
    guided = rule("mi-bound:mi=probe,draws=4,form=tv", Model(WORLD))
    assert guided.mi == SampledProbe("tv", 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": 0}, r"^probe: draws must be >= 1 rows a position, got 0$"),
        ({"draws": 4, "form": "joint"}, r"^probe: form=joint is no expectation, so draws=4 would be biased; choose form=kl or form=tv"),
        ({"draws": 4, "floor": 0.1}, r"^probe: floor=0.1 prunes exact probing; leave it out with draws=4$"),
        ({"error": 0.1}, r"^probe: error=0.1 is reached by draws; say how many to begin with, such as draws=4$"),
        ({"draws": 4, "error": 0.0}, r"^probe: error must be > 0 nats with draws >= 2"),
        ({"draws": 1, "error": 0.1}, r"^probe: error must be > 0 nats with draws >= 2 .* got 0.1 with 1$"),
    ],
)
def test_bad_settings_are_refused_in_one_line(options: dict[str, object], message: str) -> None:
    with pytest.raises(PairmiError, match=message):
        probing(**options)
    with pytest.raises(PairmiError, match=message):
        pairmi.mutual_information(Model(WORLD), "....", **options)


def test_the_probe_itself_refuses_them_too(unchecked: None) -> None:
    with pytest.raises(PairmiError, match=r"^SampledProbe\(form='joint', draws=4, error=0.0\): only kl and tv are expectations"):
        SampledProbe("joint")
    with pytest.raises(PairmiError, match="draws and batch_rows must be >= 1"):
        SampledProbe(draws=0)
    with pytest.raises(PairmiError, match="error must be >= 0 nats, and needs draws >= 2"):
        SampledProbe(draws=1, error=0.1)


def test_the_command_line_draws(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["mi", "--backbone", "sudoku4", "--canvas", "1" + "." * 15]
    assert main([*command, "--draws", "3"]) == 0
    told = capsys.readouterr().out
    assert "46 rows evaluated; unbiased, with standard errors of up to" in told
    assert " +- " in told
    assert main([*command, "--draws", "2", "--form", "tv", "--error", "0.05", "--json"]) == 0
    assert '"draws": 2' in capsys.readouterr().out
    assert main([*command, "--error", "0.05"]) == 2
    assert capsys.readouterr().err == "pairmi mi: probe: error=0.05 is reached by draws; say how many to begin with, such as draws=4\n"


def test_what_was_ruled_out_is_infinitely_far_with_an_infinite_error() -> None:
    never = torch.tensor([[0.0, -torch.inf, -torch.inf], [-0.7, -0.7, -torch.inf]], dtype=torch.float64).log_softmax(-1)

    class Surprised:
        vocab, length = Vocab(("a", "b", "c")), 2

        def __call__(self, tokens: Tokens) -> Prediction:
            answers = never.expand(len(tokens), -1, -1).clone()
            answers[tokens[:, 1] == 1, 0] = torch.tensor([-torch.inf, 0.0, -torch.inf], dtype=torch.float64)
            return Prediction(tokens, answers, answers)

    found = drawn(Surprised(), torch.full((40, 2), 3), SampledProbe("kl", 1), each=1)
    assert set(found.directed[:, 1, 0].tolist()) == {0.0, torch.inf}
    exact = drawn(Surprised(), torch.full((1, 2), 3), SampledProbe("kl", 2))
    assert exact.directed[0, 1, 0] == torch.inf
    assert exact.error[0, 0, 1] in (0, torch.inf)


def test_where_nothing_is_asked_for_the_backbone_is_left_alone() -> None:
    """As mi-guided does where no pair can matter: many networks do not take an empty batch."""
    meter = Counting(Incoherent(3, 2, 0, 1.0))
    prediction = meter(torch.full((2, 3), 2))
    nothing = replace(prediction, query=torch.zeros(2, 3, dtype=torch.bool))
    assert not SampledProbe("kl", 2)(nothing, meter, Streams(0, torch.arange(2))).any()
    assert meter.calls == 1


def test_intervals_hold_the_value_and_cover_more_than_errors_do() -> None:
    tokens, seeds = unknown(WORLD), 400
    truth = Probe("kl", 0.0).measure(WORLD(tokens), WORLD).matrix[0]
    found = drawn(WORLD, tokens.expand(seeds, -1), SampledProbe("kl", 2))
    low, high = interval(found.matrix, found.error, found.drawn)
    upper = torch.triu(torch.ones_like(truth, dtype=torch.bool), 1)
    assert bool((low <= found.matrix).all() & (found.matrix <= high).all() & (low >= 0).all())
    inside = ((low <= truth) & (truth <= high))[:, upper].double().mean()
    plain = ((found.matrix - truth).abs() <= 1.96 * found.error)[:, upper].double().mean()
    assert plain < 0.9 < inside
    mi = pairmi.mutual_information(WORLD, tokens[0], draws=2)
    assert mi.interval is not None
    torch.testing.assert_close(mi.interval[1], interval(mi.matrix[None], mi.error[None], mi.drawn[None])[1, 0])
    assert pairmi.mutual_information(WORLD, tokens[0]).interval is None


def test_what_is_looked_at_exactly_counts_for_no_degree_of_freedom() -> None:
    tokens = unknown(WORLD)
    symbols = WORLD.vocab.size
    for draws in (2, 4, symbols - 1):
        found = drawn(WORLD, tokens, SampledProbe("kl", draws))
        exact = [int((stratified(row[None], torch.rand(1, draws), 2).group < 0).sum()) for row in WORLD(tokens).log_probs[0]]
        assert found.drawn[0].tolist() == [draws - count for count in exact]
    whole = drawn(WORLD, tokens, SampledProbe("kl", symbols))
    low, high = interval(whole.matrix, whole.error, whole.drawn)
    torch.testing.assert_close(low, whole.matrix)
    torch.testing.assert_close(high, whole.matrix)
    matrix, error = torch.full((1, 2, 2), 0.5, dtype=torch.float64), torch.full((1, 2, 2), 0.1, dtype=torch.float64)
    few, many_drawn = (interval(matrix, error, torch.full((1, 2), count, dtype=torch.float64)) for count in (1.0, 50.0))
    assert bool((few[0] < many_drawn[0]).all() & (few[1] > many_drawn[1]).all())
