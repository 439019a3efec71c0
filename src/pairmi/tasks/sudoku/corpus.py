"""Sudoku as training data: base grids under random symmetries, and validation on puzzles with one solution."""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from pairmi.tasks.sudoku.puzzles import TRAINING, VALIDATION, complete_grids, unique_puzzles
from pairmi.tasks.sudoku.solver import EMPTY
from pairmi.tasks.sudoku.symmetry import random_symmetries, transform
from pairmi.types import Backbone


@dataclass(frozen=True)
class SudokuCorpus:
    """`grids` complete grids, each seen under another symmetry every time."""

    grids: int = 100_000
    seed: int = 0
    validation: int = 128

    def __post_init__(self) -> None:
        object.__setattr__(self, "_base", complete_grids(self.grids, TRAINING + self.seed))
        object.__setattr__(self, "_held_out", unique_puzzles(self.validation, VALIDATION + self.seed))

    def about(self) -> dict[str, Any]:
        """What the sequences depend on."""
        return {"name": "sudoku", "augmentation": "digits, bands, stacks, rows, columns, transposition"} | asdict(self)

    def draw(self, count: int, rng: torch.Generator) -> Int[Tensor, "B 81"]:
        """Random base grids under random symmetries."""
        base: Tensor = self._base  # type: ignore[attr-defined]
        chosen = base[torch.randint(len(base), (count,), generator=rng)]
        return transform(chosen, *random_symmetries(count, rng))

    def evaluate(self, model: Backbone) -> dict[str, float]:
        """Mean cross-entropy of the empty cells of validation puzzles."""
        held_out = self._held_out  # type: ignore[attr-defined]
        log_probs = torch.cat([model(piece).log_probs for piece in held_out.canvases.split(64)])
        empty = held_out.canvases == EMPTY
        nll = -log_probs.gather(2, held_out.solutions[:, :, None])[:, :, 0][empty]
        right = (log_probs.argmax(2) == held_out.solutions)[empty]
        return {"puzzle_nll": float(nll.mean()), "puzzle_cell_accuracy": float(right.double().mean())}
