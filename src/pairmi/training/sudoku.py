"""Sudoku as training data: base grids under random symmetries, and validation on puzzles with one solution."""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from pairmi.decoding import Sampling, decode
from pairmi.selectors.sequential import Sequential
from pairmi.tasks.sudoku.puzzles import TRAINING, VALIDATION, Puzzles, complete_grids, unique_puzzles
from pairmi.tasks.sudoku.solver import EMPTY, dig
from pairmi.tasks.sudoku.symmetry import random_symmetries, transform
from pairmi.types import Backbone


@dataclass(frozen=True)
class SudokuCorpus:
    """`grids` complete grids, each seen under another symmetry every time."""

    grids: int = 100_000
    seed: int = 0
    validation: int = 128
    solved_on: int = 64
    generating: float = 0.02  # share of the trajectories that start from the empty board, long ones; the others start from puzzles
    givens: tuple[int, int] = (20, 32)  # of these puzzles; where digging ends earlier, as few as it reaches
    minimal: float = 0.0  # share of these puzzles that are dug until no given can be left out

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

    def start(self, count: int, rng: torch.Generator) -> tuple[Int[Tensor, "B 81"], Int[Tensor, "B 81"]]:
        """Empty boards, and puzzles whose givens determine the grid."""
        clean = self.draw(count, rng)
        low, high = self.givens
        targets = torch.randint(low, high + 1, (count,), generator=rng).tolist()
        seeds = torch.randint(2**31, (count,), generator=rng).tolist()
        if self.minimal:
            targets = torch.where(torch.rand(count, generator=rng) < self.minimal, 0, torch.tensor(targets)).tolist()
        dug = [torch.from_numpy(dig(*one)) for one in zip(clean.numpy(), targets, seeds, strict=True)]
        empty = torch.rand(count, 1, generator=rng) < self.generating
        return torch.where(empty, EMPTY, torch.stack(dug)) if dug else clean, clean

    def determined(self, noisy: Int[Tensor, "B 81"]) -> Bool[Tensor, " B"]:
        """Of starts: all but the empty boards are puzzles with one solution."""
        return (noisy != EMPTY).any(1)

    def turned(
        self, noisy: Int[Tensor, "B 81"], clean: Int[Tensor, "B 81"], rng: torch.Generator
    ) -> tuple[Int[Tensor, "B 81"], Int[Tensor, "B 81"]]:
        """Both under the same random symmetry, another one for every row."""
        symmetry = random_symmetries(len(noisy), rng)
        return transform(noisy, *symmetry), transform(clean, *symmetry)

    def evaluate(self, model: Backbone) -> dict[str, float]:
        """On validation puzzles: cross-entropy and accuracy of the empty cells in one pass, and the fraction solved cell by cell."""
        held_out: Puzzles = self._held_out  # type: ignore[attr-defined]
        log_probs = torch.cat([model(piece).log_probs for piece in held_out.canvases.split(64)])
        empty = held_out.canvases == EMPTY
        nll = -log_probs.gather(2, held_out.solutions[:, :, None])[:, :, 0][empty]
        right = (log_probs.argmax(2) == held_out.solutions)[empty]
        some = slice(0, self.solved_on)
        filled = decode(model, held_out.canvases[some], Sequential(), Sampling(greedy=True)).tokens
        solved = (filled == held_out.solutions[some]).all(1)
        return {
            "puzzle_nll": float(nll.mean()),
            "puzzle_cell_accuracy": float(right.double().mean()),
            "solved": float(solved.double().mean()),
        }
