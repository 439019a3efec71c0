"""A tiny protein model of our own, and sequences from few families."""

import random
from pathlib import Path

import torch

from pairmi.backbones import esmc
from pairmi.backbones.checkpoint import save_tensors
from pairmi.tasks.protein.residues import RESIDUES

SHAPE = esmc.Shape(width=16, depth=2, heads=2, longest=62)


def opinionated_weights(file: Path, seed: int = 0, shape: esmc.Shape = SHAPE) -> str:
    """A weights file with random, strong opinions."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        weights = {name: tensor * (1 if "norm" in name else 12) for name, tensor in esmc.build(shape).state_dict().items()}
    save_tensors(file, weights, {"kind": "esmc", "shape": vars(shape)})
    return str(file)


def family_members(families: int, each: int, seed: int = 0) -> list[tuple[str, str]]:
    """(family, sequence): members are their family's sequence with every tenth residue changed."""
    rng = random.Random(seed)
    found = []
    for number in range(families):
        base = rng.choices(RESIDUES, k=rng.randint(14, 18))
        for _ in range(each):
            found.append((f"F{seed}-{number}", "".join(rng.choice(RESIDUES) if rng.random() < 0.1 else letter for letter in base)))
    return found


def write_fasta(file: Path, members: list[tuple[str, str]]) -> Path:
    """One record a sequence, with its family in the header."""
    file.write_text("".join(f">p{n} cluster={family}\n{text}\n" for n, (family, text) in enumerate(members)))
    return file
