"""Small worlds whose whole joint distribution can be written down: a support and its weights."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pairmi.model import Sequences, Task
from pairmi.tasks.sudoku.rules import valid
from pairmi.types import PairmiError

LETTERS = "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class World:
    """A joint distribution over sequences, by its support."""

    support: Int[Tensor, "S L"]
    weights: Float[Tensor, " S"]
    symbols: tuple[str, ...]


@dataclass(frozen=True)
class InWorld(Task):
    """Sequences of a small world, all of which are known; what else is known of them, another task says."""

    world: World
    like: Task = field(default_factory=Sequences)
    name: str = "world"
    decidable: ClassVar[bool] = True

    def position(self, index: int) -> str:
        """As the other task says."""
        return self.like.position(index)

    def conflict(self, canvas: Int[Tensor, " L"]) -> str | None:
        """Whether any sequence of the support fits."""
        fits = (canvas == self.world.support) | (canvas == len(self.world.symbols))
        possible = (fits.all(1) & (self.world.weights > 0)).any()
        return None if bool(possible) else "no sequence of this world fits the given positions"

    def graph(self, length: int) -> Float[Tensor, "L L"] | None:
        """As the other task says."""
        return self.like.graph(length)

    def judge(self, canvas: Int[Tensor, " L"], filled: Int[Tensor, " L"]) -> str | None:
        """Valid if it is one of the world's sequences."""
        wrong = self.conflict(filled)
        return "valid" if wrong is None else f"broken: {wrong}"


def _world(support: Tensor, weights: Tensor | None, size: int) -> World:
    if not 1 <= size <= len(LETTERS):
        raise PairmiError(f"world: expected 1 to {len(LETTERS)} symbols, got {size}")
    return World(support.long(), torch.ones(len(support)).double() if weights is None else weights.double(), tuple(LETTERS[:size]))


def _all_sequences(length: int, size: int) -> Int[Tensor, "S L"]:
    if size**length > 1_000_000:
        raise PairmiError(f"world: {size}^{length} sequences are too many to write down; at most a million")
    return torch.cartesian_prod(*[torch.arange(size)] * length).view(-1, length)


def random_table(length: int, size: int, rng: torch.Generator, sparsity: float = 0.0, sharpness: float = 1.0) -> World:
    """Every sequence with weight exp(sharpness * normal), a fraction `sparsity` of them impossible."""
    support = _all_sequences(length, size)
    weights = torch.exp(sharpness * torch.randn(len(support), generator=rng, dtype=torch.float64))
    keep = torch.rand(len(support), generator=rng) >= sparsity
    keep[torch.randint(len(support), (1,), generator=rng)] = True
    return _world(support[keep], weights[keep], size)


def markov_chain(length: int, size: int, rng: torch.Generator, sharpness: float = 2.0) -> World:
    """A chain with random transition probabilities: distant positions depend on each other less and less."""
    support = _all_sequences(length, size)
    step = torch.softmax(sharpness * torch.randn(size, size, generator=rng, dtype=torch.float64), dim=1)
    return _world(support, step[support[:, :-1], support[:, 1:]].prod(1), size)


def potts_grid(height: int, width: int, size: int, coupling: float) -> World:
    """Neighbours on a grid like to be equal: weight exp(coupling * equal neighbours)."""
    support = _all_sequences(height * width, size)
    grid = support.view(-1, height, width)
    equal = (grid[:, 1:] == grid[:, :-1]).sum((1, 2)) + (grid[:, :, 1:] == grid[:, :, :-1]).sum((1, 2))
    return _world(support, torch.exp(coupling * equal.double()), size)


def parity(length: int) -> World:
    """Bits with an even sum: every smaller set is independent, the whole is not; at length 3 this is XOR."""
    support = _all_sequences(length, 2)
    return _world(support[support.sum(1) % 2 == 0], None, 2)


def permutations(size: int) -> World:
    """All orders of `size` different symbols."""
    return _world(torch.tensor(list(itertools.permutations(range(size)))), None, size)


def independent(length: int, size: int) -> World:
    """All sequences alike: nothing depends on anything."""
    return _world(_all_sequences(length, size), None, size)


def sudoku4() -> World:
    """All 288 complete 4x4 Sudoku grids, equally likely."""
    rows = torch.tensor(list(itertools.permutations(range(4))), dtype=torch.int8)
    grids = rows[_all_sequences(4, len(rows))].flatten(1)
    return _world(grids[valid(grids, order=2)], None, 4)


def _seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


WORLDS: dict[str, Callable[[], World]] = {
    "sudoku4": sudoku4,
    "markov": lambda: markov_chain(6, 3, _seeded(0)),
    "potts": lambda: potts_grid(3, 3, 2, 0.8),
    "table": lambda: random_table(5, 3, _seeded(0), sparsity=0.5, sharpness=1.5),
    "xor": lambda: parity(3),
    "parity": lambda: parity(6),
    "permutations": lambda: permutations(5),
    "independent": lambda: independent(5, 3),
}
