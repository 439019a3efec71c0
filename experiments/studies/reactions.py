"""Reactions with published atom maps: the text that a model reads, its atoms, and where each product atom comes from."""

import csv
import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pairmi.types import Vocab


@dataclass(frozen=True)
class Side:
    """The molecules on one side of the arrow, in the order of their canonical SMILES."""

    text: str
    maps: np.ndarray  # the published number of each atom; 0 = none
    ranks: np.ndarray  # equal for atoms that symmetry makes equal
    elements: np.ndarray
    bonds: np.ndarray  # [N, N], 1 where there is one

    def __len__(self) -> int:
        return len(self.maps)


@dataclass(frozen=True)
class Reaction:
    """A reaction without its maps, and the truth: for each product atom its reactant atom, or -1 where that is not published."""

    name: str
    text: str
    reactants: Side
    products: Side
    source: np.ndarray

    @property
    def possible(self) -> np.ndarray:
        """[product atom, reactant atom]: of the same element."""
        return self.products.elements[:, None] == self.reactants.elements

    def right(self, chosen: np.ndarray) -> np.ndarray:
        """Whether each product atom with a published source was given that one, or one that symmetry makes equal to it."""
        told = self.source >= 0
        return self.reactants.ranks[chosen[told]] == self.reactants.ranks[self.source[told]]

    def places(self, vocab: Vocab) -> tuple[np.ndarray, np.ndarray]:
        """The positions of the reactants' and of the products' atoms in the text."""
        symbols = vocab.letters(vocab.encode(self.text, self.name))
        arrow, atoms = symbols.index(">>"), [n for n, symbol in enumerate(symbols) if symbol[0].isalpha() or symbol[0] == "["]
        return np.array([n for n in atoms if n < arrow]), np.array([n for n in atoms if n > arrow])


def side(mapped: str) -> Side:
    """Parse one side, and take its maps away."""
    from rdkit import Chem

    molecule = Chem.MolFromSmiles(mapped)
    if molecule is None:
        raise ValueError(f"no SMILES: {mapped}")
    maps = np.array([atom.GetAtomMapNum() for atom in molecule.GetAtoms()])
    for atom in molecule.GetAtoms():
        atom.SetAtomMapNum(0)
    ranks = np.array(Chem.CanonicalRankAtoms(molecule, breakTies=False))
    text = Chem.MolToSmiles(molecule)
    order = np.array(molecule.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])
    elements = np.array([atom.GetSymbol() for atom in molecule.GetAtoms()])
    return Side(text, maps[order], ranks[order], elements[order], Chem.GetAdjacencyMatrix(molecule)[np.ix_(order, order)])


def read_reactions(file: Path) -> list[Reaction]:
    """All of a file with the columns id and reaction."""
    with gzip.open(file, "rt") as lines:
        rows = list(csv.DictReader(lines))
    found = []
    for row in rows:
        reactants, products = (side(text) for text in row["reaction"].split(">>"))
        home = {number: place for place, number in enumerate(reactants.maps) if number}
        source = np.array([home.get(number, -1) if number else -1 for number in products.maps])
        found.append(Reaction(row["id"], f"{reactants.text}>>{products.text}", reactants, products, source))
    return found
