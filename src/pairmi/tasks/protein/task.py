"""What is known of proteins: what people write in the place of residues."""

from dataclasses import dataclass

from pairmi.model import Task
from pairmi.tasks.protein.residues import complaint


@dataclass(frozen=True)
class Protein(Task):
    """Sequences of the 20 standard residues."""

    name: str = "protein"

    def complaint(self, text: str, blanks: str) -> str | None:
        """Letters that are no residues, with their meaning and a remedy."""
        return complaint(text, blanks)
