"""Atom maps: what is read of a reaction, and how scores become a choice."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from pages.maps import write_section
from studies.assignment import GRID, Assignment
from studies.reactions import Reaction, read_reactions

pytest.importorskip("rdkit", reason="atom maps are read by rdkit")
MAPPED = "[CH3:1][C:2](=[O:3])[OH:4].[OH:5][CH2:6][CH3:7]>>[CH3:1][C:2](=[O:3])[O:5][CH2:6][CH3:7]"


@pytest.fixture
def ester(tmp_path: Path) -> Reaction:
    with gzip.open(tmp_path / "x.csv.gz", "wt") as file:
        file.write(f"id,reaction\none,{MAPPED}\ntwo,[CH3:1][CH3:2].[Cl:3]>>[CH3:2][CH2:1][Cl:3]\n")
    first, second = read_reactions(tmp_path / "x.csv.gz")
    assert second.right(np.array([1, 0, 2])).all()  # the carbons of ethane are one by symmetry
    assert second.right(np.array([0, 0, 2])).all()
    return first


def test_a_reaction_is_read_without_its_maps(ester: Reaction) -> None:
    assert ":" not in ester.text
    assert ester.text.count(">>") == 1
    for atom, home in enumerate(ester.source):
        assert ester.products.maps[atom] == ester.reactants.maps[home]
        assert ester.possible[atom, home]
    assert ester.right(ester.source).all()
    wrong = ester.source.copy()
    oxygen = int(np.flatnonzero(ester.products.maps == 5)[0])
    wrong[oxygen] = int(np.flatnonzero(ester.reactants.maps == 4)[0])
    assert (~ester.right(wrong)).sum() == 1


@pytest.mark.parametrize("way", GRID, ids=str)
def test_scores_that_are_right_stay_right(ester: Reaction, way: Assignment) -> None:
    scores = np.full(ester.possible.shape, 0.01)
    scores[np.arange(len(ester.source)), ester.source] = 1.0
    assert (way(ester, scores) == ester.source).all()


def test_neighbours_and_one_to_one_repair_an_atom_without_a_score(ester: Reaction) -> None:
    scores = np.full(ester.possible.shape, 0.01)
    scores[np.arange(len(ester.source)), ester.source] = 1.0
    doubtful = int(np.flatnonzero(ester.products.maps == 7)[0])  # the last carbon seems to come from acetic acid
    other = int(np.flatnonzero(ester.reactants.maps == 1)[0])
    scores[doubtful, other] = 1.2
    assert Assignment()(ester, scores)[doubtful] == other
    for way in (Assignment(columns=3), Assignment(neighbours=10), Assignment(one_to_one=True)):
        assert (way(ester, scores) == ester.source).all()


def test_a_section_replaces_its_own_text_only(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "maps.md"
    for name, text in (("a.py", "old"), ("b.py", "other"), ("a.py", "new")):
        write_section(page, name, text)
    assert "old" not in page.read_text()
    assert page.read_text().index("new") < page.read_text().index("other")
    assert page.read_text().startswith("# Maps")
