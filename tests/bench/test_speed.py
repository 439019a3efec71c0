"""A pass at a large vocabulary costs little beside the backbone: bounds that a copy of a prediction in float64 would break."""

from collections.abc import Iterator

import pytest
import torch

from pairmi.bench.speed import Peak, decoding_costs, selection_times
from pairmi.selectors.catalogue import CATALOGUE


def test_memory_is_counted_while_it_lives() -> None:
    with Peak() as peak:
        first = torch.zeros(1000)
        second = first + 1
        del first
        view = second[:10]
        assert peak.now == 4000
        third = torch.ones(500, dtype=torch.float64)
        assert peak.now == peak.most == 8000
        del second, view, third
    assert peak.now == 0
    assert peak.most == 8000


@pytest.fixture(scope="module")
def costs() -> Iterator[list[dict[str, float]]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pairmi.counting.NUMBERS", 1)  # pieces of as many rows as the batch has, as at larger sizes
        yield list(decoding_costs(symbols=16384, length=48, batch=2, rounds=1))


def test_every_rule_is_there_plain_and_verified(costs: list[dict[str, float]]) -> None:
    assert {(record["rule"], record["verified"]) for record in costs} == {
        (name, verified) for name in CATALOGUE for verified in (False, True)
    }


def test_no_rule_holds_more_than_three_predictions(costs: list[dict[str, float]]) -> None:
    """The prediction itself, and the next one under verification; klass remembers the last, which leaves before a draft is verified."""
    for record in costs:
        assert 1 <= record["predictions"] <= 2.6, record


def test_no_rule_takes_long_beside_the_backbone(costs: list[dict[str, float]]) -> None:
    """Loose, for busy machines: copies in float64 and noise for every symbol of every position took 34 to 43 softmaxes a pass."""
    for record in costs:
        assert 0 < record["softmaxes"] < (60 if record["verified"] else 20), record


def test_on_boards_a_rule_takes_a_small_share_of_a_pass() -> None:
    records = list(selection_times(batch=32, rounds=1))
    assert {record["rule"] for record in records} == set(CATALOGUE)
    assert all(0 < record["share"] < 0.5 for record in records), records
