"""Sudoku as training data: base grids under random symmetries, and validation on puzzles with one solution."""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from pairmi.commit import Sampling
from pairmi.decoding import decode
from pairmi.selectors.top_k import Sequential
from pairmi.tasks.sudoku.puzzles import TRAINING, VALIDATION, Puzzles, complete_grids, minimal_puzzles, unique_puzzles
from pairmi.tasks.sudoku.solver import EMPTY, Grid, dig
from pairmi.tasks.sudoku.symmetry import random_symmetries, transform
from pairmi.tasks.sudoku.techniques import Technique, technique
from pairmi.types import Backbone, PairmiError

TRIES = 30  # random digs; of a million grids less than one has none beyond among so many


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
    needing: Technique = Technique.SINGLES  # the least that a minimal one needs

    def __post_init__(self) -> None:
        if not 0 <= self.minimal <= 1:
            raise PairmiError(f"SudokuCorpus: minimal is the share of minimal puzzles, between 0 and 1, got {self.minimal}")
        object.__setattr__(self, "_base", complete_grids(self.grids, TRAINING + self.seed))
        held_out = {"puzzle": unique_puzzles(self.validation, VALIDATION + self.seed)}
        if self.minimal:
            held_out["minimal"] = minimal_puzzles(self.validation, VALIDATION + self.seed)
        object.__setattr__(self, "_held_out", held_out)

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
        dug = [torch.from_numpy(self._dig(*one)) for one in zip(clean.numpy(), targets, seeds, strict=True)]
        empty = torch.rand(count, 1, generator=rng) < self.generating
        return torch.where(empty, EMPTY, torch.stack(dug)) if dug else clean, clean

    def _dig(self, clean: Grid, target: int, seed: int) -> Grid:
        """A puzzle with so many givens; with 0 a minimal one that needs what it should, or the last that was tried."""
        puzzle = dig(clean, target, seed)
        for another in range(seed + 1, seed + TRIES if target == 0 else 0):
            if technique(puzzle) >= self.needing:
                break
            puzzle = dig(clean, target, another % 2**31)
        return puzzle

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
        """On validation puzzles: cross-entropy and accuracy of the empty cells in one pass, and the fraction solved cell by cell.

        Where minimal puzzles are followed, the same on minimal ones, of every difficulty alike.
        """
        held_out: dict[str, Puzzles] = self._held_out  # type: ignore[attr-defined]
        figures: dict[str, float] = {}
        for name, puzzles in held_out.items():
            log_probs = torch.cat([model(piece).log_probs for piece in puzzles.canvases.split(64)])
            empty = puzzles.canvases == EMPTY
            figures[f"{name}_nll"] = float(-log_probs.gather(2, puzzles.solutions[:, :, None])[:, :, 0][empty].mean())
            figures[f"{name}_cell_accuracy"] = float((log_probs.argmax(2) == puzzles.solutions)[empty].double().mean())
            some = slice(0, self.solved_on)
            filled = torch.stack([out.tokens for out in decode(model, puzzles.canvases[some], Sequential(), Sampling(greedy=True))])
            solved = (filled == puzzles.solutions[some]).all(1)
            figures["solved" if name == "puzzle" else f"{name}_solved"] = float(solved.double().mean())
        return figures
