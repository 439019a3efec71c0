"""Small protein structures as PDB files."""

from pathlib import Path

import numpy as np
from biotite.structure import AtomArray
from biotite.structure.io.pdb import PDBFile

from pairmi.tasks.protein.residues import THREE_LETTERS


def helix(length: int) -> np.ndarray:
    """Places on a helix: 3.6 residues a turn, 1.5 Angstrom a residue."""
    turn = np.arange(length) * 2 * np.pi / 3.6
    return np.stack([2.3 * np.cos(turn), 2.3 * np.sin(turn), 1.5 * np.arange(length)], 1)


def write_structure(file: Path, text: str, places: np.ndarray) -> Path:
    """One atom a residue: C-beta, of glycine C-alpha."""
    long = {letter: name for name, letter in THREE_LETTERS.items() if name != "MSE"}
    atoms = AtomArray(len(text))
    atoms.coord = places.astype(np.float32)
    atoms.chain_id[:] = "A"
    atoms.res_id = np.arange(1, len(text) + 1)
    atoms.res_name = np.array([long[letter] for letter in text])
    atoms.atom_name = np.array(["CA" if letter == "G" else "CB" for letter in text])
    atoms.element[:] = "C"
    out = PDBFile()
    out.set_structure(atoms)
    out.write(str(file))
    return file


REAL = Path(__file__).parent / "data" / "1CTF_A.pdb"  # residues 53-120 of chain A


def cut(file: Path, **spans: tuple[int, int]) -> Path:
    """Parts of the real structure, each as a chain of its own, its residues numbered as there: cut(file, A=(53, 60), B=(80, 85))."""
    lines = [line for line in REAL.read_text().splitlines() if line.startswith("ATOM")]
    parts = [
        [line[:21] + chain + line[22:] for line in lines if first <= int(line[22:26]) <= last] for chain, (first, last) in spans.items()
    ]
    file.write_text("\n".join(line for part in parts for line in part) + "\nEND\n")
    return file


def without(file: Path, *words: str) -> Path:
    """The same file without the lines that hold all these words."""
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not all(word in line for word in words)))
    return file
