from dataclasses import fields

from head_ablation import VARIANTS, Variant
from pairmi.mi.head import LowRankConfig
from pairmi.training.distill import SIZES


def test_a_variant_says_every_size_of_a_head() -> None:
    assert {*SIZES} <= {field.name for field in fields(Variant)}
    assert Variant("").places == LowRankConfig(1, 1, 1, 1).places


def test_no_two_variants_are_the_same() -> None:
    named = {one.name: tuple(getattr(one, field.name) for field in fields(one) if field.name != "name") for one in VARIANTS}
    assert len(named) == len({*named.values()}) == len(VARIANTS)
