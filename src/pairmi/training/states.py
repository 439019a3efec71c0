"""States to learn from, and those of Sudoku: random masks, and what decoders really see when they solve and when they generate."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from pairmi.decoding import Sampling, iter_decode
from pairmi.spec import Model, rule
from pairmi.tasks.sudoku.puzzles import complete_grids, unique_puzzles
from pairmi.tasks.sudoku.solver import EMPTY
from pairmi.training.denoise import Levels, corrupt
from pairmi.types import Tokens

LABELS = 4_000_000  # where the seeds of labelled grids begin: apart from those of training, validation and test puzzles
RULES = (
    "sequential",
    "top-k:k=4",
    "eb:budget=0.05",
    "eb:budget=0.5",
    "threshold:threshold=0.9",
    "mi-bound:mi=structural,budget=0.1",
)


@dataclass(frozen=True)
class State:
    """A canvas, and where it comes from."""

    tokens: Int[Tensor, " L"]
    source: str
    rule: str
    grid: str


@runtime_checkable
class States(Protocol):
    """Where states come from."""

    def about(self) -> dict[str, Any]:
        """What they depend on, but the seed."""
        ...

    def draw(self, model: Model, seed: int, shard: int, count: int) -> list[State]:
        """Different states of one length, a function of the arguments alone."""
        ...


def grid_name(grid: Int[Tensor, " L"]) -> str:
    """A name for a complete sequence: of its tokens in one byte each, or in four where they need more."""
    tokens = grid.cpu().numpy()
    return hashlib.sha256(tokens.astype(np.uint8 if tokens.max(initial=0) < 256 else np.int32).tobytes()).hexdigest()[:16]


@dataclass(frozen=True)
class Ways:
    """How trajectories are made: the rules take turns."""

    rules: Sequence[str]
    each: int  # states from one trajectory, at different random passes
    shard: int  # whose states they are: decides who begins


def visited(model: Model, canvases: Tokens, source: str, sampling: Sampling, ways: Ways, grids: Tokens | None = None) -> list[State]:
    """From the trajectory of each canvas some states with at least two unknown positions and one known."""
    states: list[State] = []
    numbers = torch.arange(len(canvases))
    for place, spec in enumerate(ways.rules):
        mine = numbers[(numbers + ways.shard) % len(ways.rules) == place]
        if not len(mine):
            continue
        seen: list[list[Tensor]] = [[] for _ in mine]
        last = canvases[mine].clone()
        for step in iter_decode(model, canvases[mine], rule(spec, model), sampling, mine):
            last[step.rows] = step.tokens
            for row, tokens, masked in zip(step.rows.tolist(), step.prediction.tokens, step.prediction.masked.sum(1).tolist(), strict=True):
                if 2 <= masked < canvases.shape[1]:
                    seen[row].append(tokens.clone())
        rng = np.random.default_rng((sampling.seed, ways.shard, place))
        for row, passes in enumerate(seen):
            grid = grid_name(last[row] if grids is None else grids[mine[row]])
            picked = sorted(rng.choice(len(passes), min(ways.each, len(passes)), replace=False).tolist()) if passes else []
            states += [State(passes[n], source, spec, grid) for n in picked]
    return states


@dataclass(frozen=True)
class SudokuStates:
    """Shares of the states from decoding trajectories; the rest from uniform masks, t ~ U[0, 1]."""

    solving: float = 0.3
    generating: float = 0.3
    each: int = 4  # states from one trajectory, at different random passes
    givens: tuple[int, int] = (25, 29)
    rules: tuple[str, ...] = RULES

    def about(self) -> dict[str, Any]:
        """What they depend on."""
        return {"name": "sudoku"} | asdict(self)

    def draw(self, model: Model, seed: int, shard: int, count: int) -> list[State]:
        """Trajectories first; what is missing then, and what came twice, is filled up with uniform masks."""
        assert model.length is not None
        numbers = np.random.SeedSequence((LABELS + seed, shard)).generate_state(4)
        first, second, sampling, levels = (int(number) >> 1 for number in numbers)
        runs = round(count * self.solving / self.each)
        puzzles = unique_puzzles(runs, first, self.givens)
        ways = Ways(self.rules, self.each, shard)
        found = visited(model, puzzles.canvases, "solving", Sampling(sampling, greedy=True), ways, puzzles.solutions)
        boards = torch.full((round(count * self.generating / self.each), model.length), EMPTY)
        found += visited(model, boards, "generating", Sampling(sampling), ways)
        chosen: dict[tuple[int, ...], State] = {}
        for state in chain(found, uniform_masks(count, second, levels)):
            if len(chosen) == count:
                break
            chosen.setdefault(tuple(state.tokens.tolist()), state)
        return list(chosen.values())


def uniform_masks(count: int, seed: int, levels: int) -> Iterator[State]:
    """Random complete grids, masked at stratified levels, without end."""
    rng = torch.Generator().manual_seed(levels)
    while True:
        grids = complete_grids(count, seed)
        t = Levels(share=0.0).draw(count, rng)
        noisy = corrupt(grids, t[torch.randperm(count, generator=rng)], EMPTY, rng)
        for tokens, grid in zip(noisy, grids, strict=True):
            yield State(tokens, "uniform", "", grid_name(grid))
        seed = (seed + 1) % 2**31
