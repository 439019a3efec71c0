"""Protein structures: the residues of a PDB file, and which of them touch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from pairmi.tasks.protein.residues import THREE_LETTERS
from pairmi.types import PairmiError

TOUCHING = 8.0  # Angstrom between C-beta atoms


@dataclass(frozen=True)
class Structure:
    """One chain: the residues that were seen, in order; a residue's place is that of its C-beta (of glycine, C-alpha)."""

    name: str
    text: str
    places: Float[np.ndarray, "L 3"]

    @property
    def contacts(self) -> Bool[np.ndarray, "L L"]:
        """The pairs that are closer than 8 Angstrom."""
        return touching(self.places)


def touching(places: Float[np.ndarray, "L 3"]) -> Bool[np.ndarray, "L L"]:
    """The pairs that are closer than 8 Angstrom."""
    apart = places[:, None] - places[None]
    return np.asarray(np.sqrt((apart**2).sum(-1)) < TOUCHING)


def read_models(file: Path) -> tuple[Any, int]:
    """The atoms of the first model of a PDB file (biotite's `AtomArray`), and the number of models."""
    try:
        from biotite import InvalidFileError
        from biotite.structure.io.pdb import PDBFile
    except ImportError as error:
        raise PairmiError("PDB: biotite is missing; pip install 'pairmi[protein]'") from error
    if not file.is_file():
        raise PairmiError(f"no file {file}; expected a PDB file")
    if not file.stat().st_size:
        raise PairmiError(f"{file} is empty; expected a PDB file")
    try:
        found = PDBFile.read(file)
        return found.get_structure(model=1), int(found.get_model_count())
    except (InvalidFileError, ValueError, UnicodeDecodeError) as error:
        raise PairmiError(f"{file} is no PDB file ({error})") from error


def read_structure(file: Path) -> Structure:
    """The first chain of the first model of a PDB file."""
    atoms, _ = read_models(file)
    atoms = atoms[np.isin(atoms.res_name, list(THREE_LETTERS))]
    if not len(atoms):
        raise PairmiError(f"{file} holds no residue of a protein")
    atoms = atoms[atoms.chain_id == atoms.chain_id[0]]
    chosen = atoms[(atoms.atom_name == "CB") | ((atoms.atom_name == "CA") & (atoms.res_name == "GLY"))]
    return Structure(file.stem, "".join(THREE_LETTERS[name] for name in chosen.res_name), chosen.coord.astype(float))


def read_structures(folder: Path, longest: int | None = None) -> list[Structure]:
    """All PDB files of a folder, by name; each of at most `longest` residues."""
    files = sorted(folder.glob("*.pdb"))
    if not files:
        raise PairmiError(f"no PDB files in {folder}; expected *.pdb")
    found = [read_structure(file) for file in files]
    for file, structure in zip(files, found, strict=True):
        if longest is not None and len(structure.text) > longest:
            raise PairmiError(f"{file}: {len(structure.text)} residues are too many for this model; at most {longest}; take the file away")
    return found
