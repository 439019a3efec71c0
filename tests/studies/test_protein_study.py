import pytest

from pages.protein import slow
from pairmi.bench import protein
from pairmi.loading import load
from pairmi.model import Model
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import rule
from pairmi.types import PairmiError
from proteins import opinionated_weights
from studies.protein_grid import all_settings
from studies.protein_study import chosen, natural


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    return opinionated_weights(tmp_path_factory.mktemp("weights") / "p.safetensors")


def test_every_setting_is_a_rule_and_every_rule_has_one(weights: str) -> None:
    model: Model = load(weights)
    settings = all_settings()
    assert settings[: len(protein.TABLE_2)] == list(protein.TABLE_2)
    assert len(settings) == len(set(settings))
    assert {spec.partition(":")[0] for spec in settings} == set(CATALOGUE)
    for spec in settings:
        rule(spec, model)


def test_of_each_rule_the_best_within_the_passes_is_chosen_and_of_a_slow_one_none() -> None:
    records = [
        {"rule": r, "passes": p, "jsd": j} for r, p, j in (("a:1", 9, 3), ("a:2", 15, 2), ("a:3", 30, 1), ("b:1", 40, 1), ("b:2", 50, 0))
    ]
    assert chosen(records, 16.0) == ["a:2"]
    assert chosen(records, 40.0) == ["a:3", "b:1"]


def test_a_study_needs_two_halves_and_a_noise_floor() -> None:
    with pytest.raises(PairmiError, match=r"few\.fasta holds 20 sequences; two halves and the noise floor need 27"):
        natural(["ACDEF"] * 20, 9, "few.fasta")


def test_rules_that_have_no_quick_setting_are_named_with_their_quickest() -> None:
    tried = [{"rule": r, "passes": p} for r, p in (("a:1", 9.0), ("a:2", 30.0), ("b:1", 40.5), ("b:2", 50.0))]
    assert slow({"validation": tried}, 16.0) == ", without the rules that have none so quick (passes of their quickest: `b` (40.5))"
    assert slow({"validation": tried[:2]}, 16.0) == ""
