import json

import numpy as np
import pytest
import torch

import pairmi
from pairmi.backbones.tabular import Tabular
from pairmi.bench.stats import wilson
from pairmi.bench.worlds import full_probe
from pairmi.cli import main
from pairmi.loading import load
from pairmi.model import Model
from pairmi.pricing.interval import upper_bound
from pairmi.spec import rule
from pairmi.tasks.tables import markov_chain
from pairmi.tuning import Evidence, family_of, fixed_sequence
from pairmi.types import PairmiError
from studies.exact_price import exact_price
from worlds import Incoherent, generator, tabular, unknown


def test_testing_stops_at_the_first_failure() -> None:
    bounds = {"a": 0.1, "b": 0.2, "c": 0.6, "d": 0.1}
    best, tested = fixed_sequence(bounds, lambda name: Evidence(name, 0.0, bounds[name], 1.0, (0.0, 0.0)), 0.5)
    assert best is not None
    assert best.rule == "b"
    assert [one.rule for one in tested] == ["a", "b", "c"]
    assert fixed_sequence(["c"], lambda name: Evidence(name, 0.0, bounds[name], 1.0, (0.0, 0.0)), 0.5)[0] is None


def test_the_promise_is_kept_in_exact_worlds() -> None:
    """200 tunings: the loss is a function of the finished sequence, so that each draws from the walked branches."""
    table = tabular(markov_chain(6, 3, generator(0)))
    family = [full_probe(spec) for spec in family_of("mi-bound:budget=0.001..0.6", 8)]
    exact = {spec: exact_price(table, unknown(table)[0], rule(spec, Model(table))) for spec in family}
    rng, broken, slower = np.random.default_rng(0), 0, []
    limit = 0.12
    for _ in range(200):

        def measured(spec: str) -> Evidence:
            walked = exact[spec]
            values = rng.choice(walked.each.numpy(), p=(walked.mass / walked.mass.sum()).numpy(), size=128)
            return Evidence(spec, float(values.mean()), upper_bound(values), walked.passes, (0.0, 0.0))

        best, _ = fixed_sequence(family, measured, limit)
        broken += best is not None and exact[best.rule].nats > limit
        fastest = min(walked.passes for walked in exact.values() if walked.nats <= limit)
        slower.append((6 if best is None else best.passes) / fastest)
    assert broken / 200 <= 0.05
    assert wilson(broken, 200)[0] <= 0.05
    assert np.mean(slower) <= 1.3


def test_a_limit_in_nats() -> None:
    model = load("sudoku4")
    tuned = pairmi.tune(model, "." * 16, "mi-bound:budget=0.05|0.2|1", max_loss=0.5, sequences=32)
    assert tuned.kept
    assert tuned.passes < 6 < tuned.sequential_passes == 16
    assert tuned.interval[0] <= tuned.loss <= tuned.interval[1]
    truth = exact_price(model.backbone, unknown(model)[0], rule(tuned.rule, model)).nats
    assert truth <= 0.5
    assert not tuned.tested[-1].passed(0.5)
    document = json.loads(json.dumps(tuned.about()))
    assert document["rule"] in str(tuned)
    assert document["kept"]
    finer = pairmi.tune(model, "." * 16, [tuned.rule], max_loss=0.5 / 16, per="position", sequences=32)
    assert finer.rule == tuned.rule
    assert finer.loss == pytest.approx(tuned.loss / 16)


def test_a_limit_that_no_setting_keeps_means_sequential() -> None:
    tuned = pairmi.tune(load("sudoku4"), "." * 16, "top-k:k=2|4", max_loss=0.1, sequences=8)
    assert not tuned.kept
    assert (tuned.rule, tuned.loss, tuned.passes) == ("sequential", 0, 16)
    assert "no setting loses at most 0.1 nats a sequence" in str(tuned)
    assert "decode sequentially" in str(tuned)


def test_a_limit_on_quality() -> None:
    model = load("sudoku4")
    found = pairmi.tune(model, "." * 16, "top-k:k=1|4", max_quality_loss=0.2, sequences=64)
    assert found.rule == "top-k:k=1"  # four at once break most grids
    assert found.loss == 0
    assert found.tested[1].loss > 0.5
    always = pairmi.tune(model, "." * 16, "top-k:k=1|4", max_quality_loss=0.2, sequences=64, quality=lambda tokens: 1.0)
    assert always.rule == "top-k:k=4"


def test_the_default_family_is_calibrated_where_the_model_is() -> None:
    model = load("xor")
    assert pairmi.tune(model, "...", max_loss=0.2, sequences=64).tested[0].rule.startswith("mi-bound:penalty=4")
    calibrated = pairmi.calibrate(model, "...", sequences=16)
    tuned = pairmi.tune(calibrated, "...", max_loss=0.2, sequences=64)
    assert tuned.rule.startswith("mi-bound:charge=calibrated")
    assert tuned.passes == 2


def test_families() -> None:
    assert family_of("eb:budget=0.01..1", 3) == ["eb:budget=0.01", "eb:budget=0.1", "eb:budget=1"]
    assert family_of("top-k:k=1..4") == ["top-k:k=1", "top-k:k=2", "top-k:k=3", "top-k:k=4"]
    assert family_of("threshold:threshold=0.99|0.9") == ["threshold:threshold=0.99", "threshold:threshold=0.9"]
    assert family_of("mi-bound:mi=random,budget=1|2") == ["mi-bound:mi=random,budget=1", "mi-bound:mi=random,budget=2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "expected a limit, either max_loss"),
        ({"max_loss": 0.1, "max_quality_loss": 0.1}, "expected a limit, either max_loss"),
        ({"max_loss": -1.0}, "the limit must be >= 0, got -1"),
        ({"max_loss": 0.1, "confidence": 1.0}, "confidence=1.0: must be at least 0.5 and below 1"),
        ({"max_loss": 0.1, "per": "token"}, "per='token': must be sequence or position"),
        ({"max_loss": 0.1, "family": []}, "expected at least one setting in the family, got none"),
        ({"max_loss": 0.1, "family": "eb"}, "family 'eb': expected a rule with one swept parameter"),
        ({"max_loss": 0.1, "family": "eb:budget=a..b"}, "budget must be numbers such as 0.01..1"),
        ({"max_loss": 0.1, "family": "eb:budget=0..1"}, "budget=FROM..TO needs two numbers above 0"),
    ],
)
def test_bad_input_is_named(arguments, message: str, unchecked: None) -> None:
    with pytest.raises(PairmiError, match=message):
        pairmi.tune(load("xor"), "...", **arguments)


def test_quality_needs_a_right_answer() -> None:
    with pytest.raises(PairmiError, match="no right answer is known for model 'custom'; give quality=FUNCTION"):
        pairmi.tune(Model(Incoherent(3, 2, 0, 1.0)), torch.full((3,), 2), "top-k:k=1|2", max_quality_loss=0.1)


def test_the_command_says_what_it_tested_and_what_it_chose(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["tune", "--backbone", "sudoku4", "--canvas", "." * 16, "--sequences", "24", "--family", "eb:budget=0.1|0.5|3"]
    assert main([*command, "--max-loss", "0.2"]) == 0
    out = capsys.readouterr().out
    assert "| eb:budget=3 " in out
    assert out.splitlines()[-1].startswith("eb:budget=0.5 loses at most 0.2 nats a sequence at 95 % confidence (24 sequences, seed 0)")
    assert main([*command, "--max-quality-loss", "0.3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rule"] == "eb:budget=0.5"
    assert main([*command[:-1], "eb", "--max-loss", "0.2"]) == 2
    assert capsys.readouterr().err.startswith("pairmi tune: family 'eb': expected a rule with one swept parameter")


@pytest.mark.parametrize(("count", "temperature"), [(8, 1.0), (2, 0.25)])
def test_a_rare_event_that_moves_all_members_at_once_does_not_break_the_promise(count: int, temperature: float) -> None:
    """One sequence in a hundred is another one altogether, and few sequences show it."""
    model = Model(Tabular(torch.tensor([[0] * count, [1] * count]), torch.tensor([0.99, 0.01]).double(), ("a", "b")))
    spec, broken = f"top-k:k={count}", 0
    truth = exact_price(model.backbone, unknown(model)[0], rule(spec, model), temperature=temperature).nats
    for seed in range(40):
        tuned = pairmi.tune(model, "." * count, [spec], max_loss=0.8 * truth, sequences=32, seed=1000 + seed, temperature=temperature)
        broken += tuned.rule == spec
    assert broken <= 2  # at 95 % confidence


def test_a_quality_that_is_no_share_is_refused() -> None:
    with pytest.raises(PairmiError, match=r"^tune: quality must be a number between 0 and 1, got 100 to 100; scale it$"):
        pairmi.tune(load("xor"), "...", ["top-k:k=3"], max_quality_loss=2.0, quality=lambda tokens: 100.0)
    with pytest.raises(PairmiError, match=r"^tune: quality must be a number between 0 and 1, got nan to nan"):
        pairmi.tune(load("xor"), "...", ["top-k:k=3"], max_quality_loss=0.1, quality=lambda tokens: float("nan"))


def test_the_interval_of_quality_covers_what_was_not_seen() -> None:
    found = pairmi.tune(load("xor"), "...", ["sequential"], max_quality_loss=0.5, quality=lambda tokens: 1.0, sequences=64)
    low, high = found.interval
    assert low < -0.02 < 0.02 < high


def test_an_own_backbone_is_tuned_and_calibrated_as_it_is() -> None:
    own = load("xor").backbone
    assert pairmi.tune(own, "...", ["top-k:k=1", "top-k:k=3"], max_loss=0.5, sequences=64).rule == "top-k:k=1"
    good = ["top-k:k=1"], {"max_quality_loss": 0.5, "quality": lambda tokens: 1.0}
    assert pairmi.tune(own, "...", good[0], **good[1]).kept
    with pytest.raises(PairmiError, match="no right answer is known for model 'custom'"):
        pairmi.tune(own, "...", ["top-k:k=1"], max_quality_loss=0.5)
    assert pairmi.calibrate(load("permutations").backbone, ".....", sequences=64).calibration is not None


def test_what_was_found_is_shown_in_a_line() -> None:
    found = pairmi.tune(load("xor"), "...", ["top-k:k=1"], max_loss=0.5)
    assert repr(found) == f"Tuned({found})"
    assert "\n" not in repr([found])
