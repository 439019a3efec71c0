"""What is known of proteins: what people write in the place of residues."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from pairmi.model import Task
from pairmi.tasks.protein.residues import complaint
from pairmi.tasks.protein.scaffold import Scaffold


@dataclass(frozen=True)
class Protein(Task):
    """Sequences of the 20 standard residues."""

    name: str = "protein"

    def complaint(self, text: str, blanks: str) -> str | None:
        """Letters that are no residues, with their meaning and a remedy."""
        return complaint(text, blanks)


@dataclass(frozen=True)
class Design(Task):
    """Sequences for a structure: residues are called as in its file, and contacts are what an expert would expect."""

    scaffold: Scaffold
    name: str = "design"

    def position(self, index: int) -> str:
        """Such as A:52."""
        return str(self.scaffold.residues[index])

    complaint = Protein.complaint

    def graph(self, length: int) -> Float[Tensor, "L L"] | None:
        """Residues that touch."""
        return torch.from_numpy(self.scaffold.contacts).double().fill_diagonal_(0)
