"""Which reading ranks contacts best: what one half of the structures chooses is reported on the other."""

import argparse
from types import SimpleNamespace

import numpy as np
import pytest

from contact_variants import section

LENGTH = 24
OPTIONS = argparse.Namespace(contexts=0, noises=0)


def told(on_first: float, on_second: float) -> str:
    """The section, where `MI, good` ranks this share of the L strongest pairs right on the two halves, and `MI, bad` none."""
    rng = np.random.default_rng(0)
    contacts = np.zeros((LENGTH, LENGTH), bool)
    i, j = np.triu_indices(LENGTH, 6)
    own = rng.permutation(len(i))[: 2 * LENGTH]
    contacts[i[own], j[own]] = contacts[j[own], i[own]] = True
    wrong = np.setdiff1d(np.arange(len(i)), own)

    def ranking(share: float) -> np.ndarray:
        right = round(share * LENGTH)
        first = np.concatenate([own[:right], wrong[: LENGTH - right]])
        matrix = np.zeros((LENGTH, LENGTH))
        matrix[i[first], j[first]] = matrix[j[first], i[first]] = 1
        return matrix

    scaffolds = {name: SimpleNamespace(contacts=contacts, text="A" * LENGTH) for name in "abcd"}
    shares = dict(zip("abcd", (on_first, on_second) * 2, strict=True))
    found = {
        name: {"MI, good": ranking(share), "MI, bad": ranking(0), "log-odds": ranking(0.25 if name in "ac" else 1)}
        for name, share in shares.items()
    }
    return section(found, scaffolds, OPTIONS)  # type: ignore[arg-type]


@pytest.mark.parametrize(("on_first", "on_second", "verdict"), [(1, 1, "met, with the whole interval"), (1, 0.5, "missed")])
def test_the_aim_is_judged_by_what_the_other_half_has_chosen(on_first: float, on_second: float, verdict: str) -> None:
    text = told(on_first, on_second)
    assert f"the aim of 0.8 is **{verdict}** by mutual information" in text
    assert f"chosen on the first half `MI, good`, on the other {on_second:.3f}; chosen on the second half `MI, good`" in text


def test_a_reading_that_is_good_on_one_half_alone_is_reported_where_it_was_not_chosen() -> None:
    text = told(0.5, 0.5)  # the first half prefers `MI, good`, the second `log-odds`, which is poor on the first
    every = next(line for line in text.splitlines() if line.startswith("* All readings"))
    assert "chosen on the second half `log-odds`, on the other 0.250; together **0.375" in every
