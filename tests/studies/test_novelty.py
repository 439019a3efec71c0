import random

import pytest

from pairmi.tasks.protein.residues import RESIDUES
from pairmi.types import PairmiError
from studies.novelty import Nearest


def sequences(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices(RESIDUES, k=60)) for _ in range(count)]


TRAINING = sequences(50, 0)


def test_a_copy_a_mutant_and_a_stranger() -> None:
    nearest = Nearest(TRAINING)
    assert nearest.identity(TRAINING[7]) == 1
    mutant = "".join(("A" if letter != "A" else "C") if place % 4 == 0 else letter for place, letter in enumerate(TRAINING[7]))
    assert nearest.identity(mutant) == pytest.approx(0.75, abs=0.04)
    assert nearest.identity(TRAINING[7][:30] + TRAINING[7][33:]) == 1
    assert all(nearest.identity(text) < 0.45 for text in sequences(5, 1))


def test_few_candidates_find_what_aligning_with_everything_finds() -> None:
    mutant = TRAINING[3][:20] + sequences(1, 5)[0][:15] + TRAINING[3][35:]
    assert Nearest(TRAINING, candidates=1).identity(mutant) == Nearest(TRAINING, candidates=50).identity(mutant)


def test_without_biotite_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "biotite.sequence", None)
    with pytest.raises(PairmiError, match=r"novelty: biotite is missing; pip install 'pairmi\[protein\]'"):
        Nearest(TRAINING)
