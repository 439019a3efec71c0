from dataclasses import replace

import pytest
import torch

from heads import labelled, tiny
from pairmi.store import triangle
from studies.relations import by_relation
from worlds import Linked

GRAPH = (torch.arange(8)[:, None] // 4 == torch.arange(8) // 4).double().fill_diagonal_(0)
LABELS, _ = labelled(replace(tiny(), task=Linked(GRAPH)), 60)


def test_the_mean_by_relation() -> None:
    records = by_relation(LABELS, {"linked": GRAPH, "none": 1 - GRAPH}, 4)
    assert [record["relation"] for record in records] == ["linked", "none"]
    assert sum(record["pairs"] for record in records) == int((LABELS.masked * (LABELS.masked - 1) // 2).sum())
    good = torch.where(triangle(GRAPH[None])[0] > 0, LABELS.mi, 0.9 * LABELS.mi)  # all of its error is where nothing is linked
    linked, none = by_relation(LABELS, {"linked": GRAPH, "none": 1 - GRAPH}, 4, {"good": good})
    assert (linked["good: R2"], linked["good: share of error"]) == (1, 0)
    assert none["good: share of error"] == pytest.approx(1)
    assert 0.5 < none["good: R2"] < 1
