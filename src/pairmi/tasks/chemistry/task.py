"""What is known of reactions as SMILES: that atom maps are no part of the text that models read."""

import re
from dataclasses import dataclass

from pairmi.model import Task

MAPPED = re.compile(r":\d+\]")


@dataclass(frozen=True)
class Reaction(Task):
    """Reactants >> products."""

    name: str = "reaction"

    def complaint(self, text: str, blanks: str) -> str | None:
        """Atom maps, reagents between two arrows, blanks inside."""
        if found := MAPPED.search(text):
            return f"{found.group()!r} at letter {found.start() + 1} is an atom map, which the model does not read; strip the maps"
        if text.count(">>") != 1:
            return f"expected reactants>>products, got {text.count('>>')} times '>>'; put reagents among the reactants"
        return None
