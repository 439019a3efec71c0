import math

import pytest

from pairmi.bench.protein import quality
from pairmi.bench.sequence_sets import low_complexity, residue_counts
from pairmi.tasks.protein.residues import RESIDUES
from studies.protein_corpus import unigram_perplexity


def test_residues_are_counted_in_alphabetical_order() -> None:
    counts = residue_counts(["AAC", "YA"])
    assert (counts[0], counts[1], counts[-1], counts.sum()) == (3, 1, 1, 5)


def test_the_unigram_of_equal_residues_is_20() -> None:
    assert unigram_perplexity([RESIDUES], ["ACD"]) == pytest.approx(20)
    assert unigram_perplexity([RESIDUES + "A" * 20], ["A"]) == pytest.approx(40 / 21)


@pytest.mark.filterwarnings("error")
def test_a_residue_that_was_never_seen_is_infinitely_surprising() -> None:
    assert unigram_perplexity(["AC"], ["ACD"]) == math.inf


def test_repeats_are_of_low_complexity_and_varied_stretches_are_not() -> None:
    assert low_complexity("A" * 30) == 1
    assert low_complexity(RESIDUES * 2) == 0
    assert low_complexity("A" * 5) == 0
    mixed = RESIDUES + "A" * 30 + RESIDUES
    assert 30 / len(mixed) <= low_complexity(mixed) < 48 / len(mixed)


def test_the_trigger_is_the_entropy_of_a_window() -> None:
    window = "AACCDDEEFFGG"
    assert low_complexity(window, trigger=math.log2(6) - 1e-9) == 0
    assert low_complexity(window, trigger=math.log2(6) + 1e-9) == 1


def test_copies_count_once() -> None:
    assert quality(["A", "A", "C", "D"], ["A"])["distinct"] == 0.75
