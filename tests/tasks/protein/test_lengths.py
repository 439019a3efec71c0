from collections import Counter

from pairmi.tasks.protein.lengths import lengths_like, same_length


def test_sequences_are_taken_together_by_length() -> None:
    lengths = [5, 3, 5, 5, 3, 9]
    assert list(same_length(lengths, 2)) == [[1, 4], [0, 2], [3], [5]]
    assert list(same_length(lengths, 9)) == [[1, 4], [0, 2, 3], [5]]
    assert list(same_length([], 2)) == []


def test_lengths_have_the_distribution_of_the_reference() -> None:
    reference = [50] * 6 + [70] * 3 + [100]
    assert Counter(lengths_like(reference, 10)) == {50: 6, 70: 3, 100: 1}
    assert Counter(lengths_like(reference, 100)) == {50: 60, 70: 30, 100: 10}
    assert set(lengths_like(range(108, 126), 500)) == set(range(108, 126))
