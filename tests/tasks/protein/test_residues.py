import pytest

from pairmi.tasks.protein.residues import RESIDUES, complaint, speaks_protein
from pairmi.types import Vocab


def test_residues_and_blanks_are_fine() -> None:
    assert complaint(RESIDUES + "._") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("AC*", "'*' at position 3 is a stop codon; cut the sequence there"),
        ("aCD", "'a' at position 1 is in lower case; write residues in capitals"),
        ("AX", "'X' at position 2 is any residue; write '.'"),
        ("x", "'x' at position 1 is any residue"),
        ("A-C", "'-' at position 2 is an alignment gap"),
        ("A1", "'1' at position 2 is no residue; expected ACDEFGHIKLMNPQRSTVWY, or '.' for unknown"),
    ],
)
def test_anything_else_is_explained(text: str, message: str) -> None:
    assert complaint(text).startswith(message)


def test_an_alphabet_of_proteins_has_the_20_residues_in_any_order() -> None:
    assert speaks_protein(Vocab(tuple("LAGVSERTIDPKQNFYMHWC")))
    assert not speaks_protein(Vocab(tuple("123456789")))
