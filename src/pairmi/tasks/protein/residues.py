"""The 20 standard residues, and what people write in their place."""

from pairmi.types import Vocab

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
THREE_LETTERS = {
    "ALA": "A", "CYS": "C", "ASP": "D", "GLU": "E", "PHE": "F", "GLY": "G", "HIS": "H", "ILE": "I", "LYS": "K", "LEU": "L",
    "MET": "M", "ASN": "N", "PRO": "P", "GLN": "Q", "ARG": "R", "SER": "S", "THR": "T", "VAL": "V", "TRP": "W", "TYR": "Y",
    "MSE": "M",  # selenomethionine stands for methionine in crystals
}  # fmt: skip
MEANINGS = {
    "*": "a stop codon; cut the sequence there",
    "-": "an alignment gap; remove it, or write '.' for an unknown residue",
    "X": "any residue; write '.' for an unknown one",
    "B": "D or N; choose one, or write '.'",
    "Z": "E or Q; choose one, or write '.'",
    "J": "I or L; choose one, or write '.'",
    "U": "selenocysteine; write C, or '.'",
    "O": "pyrrolysine; write K, or '.'",
}


def speaks_protein(vocab: Vocab) -> bool:
    """Whether an alphabet is that of proteins."""
    return sorted(vocab.symbols) == list(RESIDUES)


def complaint(text: str, blanks: str = "._") -> str | None:
    """What is wrong with a protein canvas, or without `blanks` with a complete protein, with a remedy; None = nothing."""
    for place, letter in enumerate(text, 1):
        if letter in RESIDUES or letter in blanks:
            continue
        if letter.upper() in RESIDUES:
            soft = ", and '.' for what is soft-masked" if blanks else ""
            return f"{letter!r} at position {place} is in lower case; write residues in capitals{soft}"
        meaning = MEANINGS.get(letter.upper(), f"no residue; expected {RESIDUES}, or '.' for unknown")
        if not blanks and "'.'" in meaning:
            meaning = f"{meaning.partition(';')[0]}; expected a complete sequence of {RESIDUES}: mend it, or leave it out"
        return f"{letter!r} at position {place} is {meaning}"
    return None
