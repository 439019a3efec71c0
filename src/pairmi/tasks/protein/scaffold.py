"""Protein structures in PDB files: chains, which of their residues touch, and the scaffolds for which sequences are designed."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from pairmi.optional import needed
from pairmi.tasks.protein.residues import THREE_LETTERS
from pairmi.types import PairmiError

TOUCHING = 8.0  # Angstrom between C-beta atoms
BACKBONE = ("N", "CA", "C", "O")
SPAN = re.compile(r"(-?\d+)([A-Za-z]?)(?:-(-?\d+)([A-Za-z]?))?")


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
    pdb = needed("biotite.structure.io.pdb", "PDB", "'pairmi[protein]'")
    if not file.is_file():
        raise PairmiError(f"no file {file}; expected a PDB file")
    if not file.stat().st_size:
        raise PairmiError(f"{file} is empty; expected a PDB file")
    try:
        found = pdb.PDBFile.read(file)
        return found.get_structure(model=1), int(found.get_model_count())
    except (import_module("biotite").InvalidFileError, ValueError, UnicodeDecodeError) as error:
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


@dataclass(frozen=True)
class Residue:
    """One residue, as the file calls it."""

    chain: str
    number: int
    insertion: str
    letter: str

    def __str__(self) -> str:
        return f"{self.chain}:{self.number}{self.insertion}" if self.chain else f"{self.number}{self.insertion}"


@dataclass(frozen=True)
class Scaffold:
    """The residues of one or more chains, chain after chain, with the atoms of their backbones."""

    name: str
    residues: tuple[Residue, ...]
    atoms: Float[np.ndarray, "L 4 3"]  # N, CA, C, O
    places: Float[np.ndarray, "L 3"]  # of C-beta, where there is one, else of C-alpha

    @property
    def text(self) -> str:
        """The native sequence, chain after chain."""
        return "".join(residue.letter for residue in self.residues)

    @property
    def chain_names(self) -> list[str]:
        """Of the chains, in order."""
        return list(dict.fromkeys(residue.chain for residue in self.residues))

    @property
    def chains(self) -> Int[np.ndarray, " L"]:
        """The number of each residue's chain."""
        return np.array([self.chain_names.index(residue.chain) for residue in self.residues])

    @property
    def index(self) -> Int[np.ndarray, " L"]:
        """How far along its chain each residue is: gaps in the numbering count, insertions take one place each."""
        found: list[int] = []
        for before, residue in zip((None, *self.residues), self.residues, strict=False):
            follows = before is not None and before.chain == residue.chain
            found.append(found[-1] + max(1, residue.number - before.number) if before is not None and follows else 0)
        return np.array(found)

    @property
    def contacts(self) -> Bool[np.ndarray, "L L"]:
        """The pairs that are closer than 8 Angstrom."""
        return touching(self.places)

    def split(self, text: str) -> dict[str, str]:
        """The part of each chain in a sequence for all."""
        return {name: "".join(x for x, own in zip(text, self.residues, strict=True) if own.chain == name) for name in self.chain_names}

    def find(self, text: str) -> list[int]:
        """The positions that people name so: "A" (a chain), "A:5", "A:52A", "A:1-10", several set apart by commas."""
        return sorted({position for part in text.split(",") for position in self._found(part.strip(), text)})

    def _found(self, part: str, text: str) -> list[int]:
        chain, colon, span = part.rpartition(":")
        if not colon and part in self.chain_names:
            return [i for i, residue in enumerate(self.residues) if residue.chain == part]
        if not colon and len(self.chain_names) == 1:
            chain = self.chain_names[0]
        if chain not in self.chain_names:
            raise PairmiError(f"{text!r}: {self.name} has no chain {chain or part!r}; it has {', '.join(self.chain_names)}")
        matched = SPAN.fullmatch(span)
        if matched is None:
            raise PairmiError(f"{text!r}: {part!r} names no residues; expected chain:number or chain:first-last, such as A:1-10")
        start = (int(matched[1]), matched[2])
        end = start if matched[3] is None else (int(matched[3]), matched[4] or "~")  # the insertions of the last one belong to a span
        keys = [(residue.number, residue.insertion) if residue.chain == chain else None for residue in self.residues]
        found = [i for i, key in enumerate(keys) if key is not None and start <= key <= end]
        if not found:
            mine = [str(residue) for residue in self.residues if residue.chain == chain]
            raise PairmiError(f"{text!r}: {self.name} has no residue {part}; chain {chain} goes from {mine[0]} to {mine[-1]}")
        return found


def read_scaffold(file: Path, chain: str | None = None) -> Scaffold:
    """The backbones of a PDB file of one model: of all its protein chains, or of those that `chain` names ("A" or "A,B")."""
    atoms, models = read_models(file)
    if models > 1:
        raise PairmiError(f"{file} holds {models} models (MODEL records), expected one; keep the one to design for, remove the others")
    found = list(_residues(atoms, file))
    if not found:
        raise PairmiError(f"{file} holds no residue of a protein")
    names = list(dict.fromkeys(residue.chain for residue, _ in found))
    wanted = names if chain is None else [name.strip() for name in chain.split(",")]
    for name in wanted:
        if name not in names:
            raise PairmiError(f"{file} has no protein chain {name!r}; it has {', '.join(names)}")
    chosen = [one for name in dict.fromkeys(wanted) for one in found if one[0].chain == name]
    if not any(set(BACKBONE) & places.keys() - {"CA"} for _, places in chosen):
        raise PairmiError(f"{file} holds no backbone atoms: expected {', '.join(BACKBONE)} of every residue; give a full-atom file")
    for residue, places in chosen:
        missing = [atom for atom in BACKBONE if atom not in places]
        if missing:
            raise PairmiError(f"{file}: residue {residue} ({residue.letter}) lacks {', '.join(missing)}; model it, or remove the residue")
    residues = [residue for residue, _ in chosen]
    twice = [name for name, count in Counter(map(str, residues)).items() if count > 1]
    if twice:
        raise PairmiError(f"{file}: there are two residues {twice[0]}; keep one of them")
    backbones = np.array([[places[atom] for atom in BACKBONE] for _, places in chosen], dtype=float)
    sides = np.array([places.get("CB", places["CA"]) for _, places in chosen], dtype=float)
    return Scaffold(file.stem, tuple(residues), backbones, sides)


def _residues(atoms: Any, file: Path) -> Iterator[tuple[Residue, dict[str, np.ndarray]]]:
    """The residues of proteins with the places of their atoms; water, ions, ligands and nucleotides are passed over."""
    from biotite.structure import get_residue_starts

    borders = get_residue_starts(atoms, add_exclusive_stop=True)
    for start, stop in pairwise(borders):
        first, names = atoms[start], list(dict.fromkeys(atoms.res_name[start:stop].tolist()))
        places = dict(zip(atoms.atom_name[start:stop][::-1], atoms.coord[start:stop][::-1], strict=True))  # of atoms listed twice the first
        residue = Residue(str(first.chain_id), int(first.res_id), str(first.ins_code), THREE_LETTERS.get(names[0], "X"))
        if residue.letter != "X" and len(names) > 1:
            raise PairmiError(f"{file}: there are two residues {residue}, {' and '.join(names)}; keep one of them")
        if residue.letter != "X":
            yield residue, places
        elif {"N", "CA", "C"} <= places.keys():
            raise PairmiError(f"{file}: residue {residue} is {names[0]}, no standard one; rename it to what it stands for, or remove it")
