"""States to learn from, of Sudoku and of proteins: random masks, and what decoders really see when they solve and when they generate."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from pairmi.commit import Sampling
from pairmi.decoding import iter_decode
from pairmi.model import Model
from pairmi.spec import rule
from pairmi.tasks.protein.fasta import Record, read_proteins
from pairmi.tasks.protein.residues import speaks_protein
from pairmi.tasks.sudoku.puzzles import complete_grids, unique_puzzles
from pairmi.tasks.sudoku.solver import EMPTY
from pairmi.training.denoise import Levels, corrupt
from pairmi.types import PairmiError, Tokens

LABELS = 4_000_000  # where the seeds of labelled grids begin: apart from those of training, validation and test puzzles
RULES = (
    "sequential",
    "top-k:k=4",
    "eb:budget=0.05",
    "eb:budget=0.5",
    "threshold:threshold=0.9",
    "mi-bound:mi=structural,budget=0.1",
)
PROTEIN_RULES = ("sequential", "sequential:by=random", "top-k:k=4", "top-k:k=8,by=random", "eb:budget=8", "maskgit:steps=15")
GOLDEN = (5**0.5 - 1) / 2
PATIENCE = 50  # rounds of masks in search of different states


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


@runtime_checkable
class ByShard(Protocol):
    """States of several models with the same weights, a shard of one of them."""

    def model_of(self, shard: int) -> Model:
        """Whose states a shard has."""
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
            last[step.rows] = step.tokens.cpu()
            before = step.tokens.masked_fill(step.committed, model.vocab.size).cpu()
            for row, tokens, masked in zip(step.rows.tolist(), before, (before == model.vocab.size).sum(1).tolist(), strict=True):
                if 2 <= masked < canvases.shape[1]:
                    seen[row].append(tokens)
        rng = np.random.default_rng((sampling.seed, ways.shard, place))
        for row, passes in enumerate(seen):
            grid = grid_name(last[row] if grids is None else grids[mine[row]])
            picked = sorted(rng.choice(len(passes), min(ways.each, len(passes)), replace=False).tolist()) if passes else []
            states += [State(passes[n], source, spec, grid) for n in picked]
    return states


def distinct(states: Iterable[State], count: int) -> list[State]:
    """The first `count` different ones."""
    chosen: dict[tuple[int, ...], State] = {}
    for state in states:
        if len(chosen) == count:
            break
        chosen.setdefault(tuple(state.tokens.tolist()), state)
    return list(chosen.values())


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
        return distinct(chain(found, uniform_masks(count, second, levels)), count)


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


def family_name(cluster: str) -> str:
    """A name for a family, by whose hash its states are put into the training, validation or test part."""
    return hashlib.sha256(cluster.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class ProteinStates:
    """A share of the states from trajectories that begin with nothing; the rest are natural sequences at t ~ U[0, 1].

    The states of a shard have one length, so that they are probed together; over the shards lengths come as often as among the
    sequences. A family of n sequences counts as the root of n, as when a model is trained.
    """

    records: Sequence[Record]
    generating: float = 0.4
    each: int = 2  # states from one trajectory, at different random passes
    rules: tuple[str, ...] = PROTEIN_RULES
    balance: float = 0.5

    def about(self) -> dict[str, Any]:
        """What they depend on."""
        digest = hashlib.sha256("".join(f"{record.cluster} {record.text}\n" for record in self.records).encode()).hexdigest()[:16]
        settings = {"generating": self.generating, "each": self.each, "rules": self.rules, "balance": self.balance}
        return {"name": "protein", "sequences": len(self.records), "fingerprint": digest} | settings

    def length(self, seed: int, shard: int) -> int:
        """Of the states of a shard: quantiles of the sequences' lengths, evenly spread however many shards there are."""
        lengths = sorted(len(record.text) for record in self.records)
        place = (np.random.default_rng(LABELS + seed).random() + GOLDEN * shard) % 1
        return lengths[int(place * len(lengths))]

    def draw(self, model: Model, seed: int, shard: int, count: int) -> list[State]:
        """Trajectories first; what is missing then is filled up with masked sequences. No state twice, none without a pair."""
        length, rng = self.length(seed, shard), np.random.default_rng((LABELS + seed, shard))
        boards = torch.full((round(count * self.generating / self.each), length), model.vocab.size)
        found = visited(model, boards, "generating", Sampling(int(rng.integers(2**31))), Ways(self.rules, self.each, shard))
        natural = islice(self._masked(model, length, count, rng), PATIENCE * count)
        chosen = distinct((state for state in chain(found, natural) if 2 <= int((state.tokens == model.vocab.size).sum()) < length), count)
        if len(chosen) < count:
            raise PairmiError(
                f"labels: sequences of {length} residues give {len(chosen)} different states, {count} are wanted; "
                "give more or longer sequences, or a smaller --shard"
            )
        return chosen

    def _masked(self, model: Model, length: int, count: int, rng: np.random.Generator) -> Iterator[State]:
        """Sequences of one length, masked at stratified levels, without end."""
        sizes = Counter(record.cluster for record in self.records)
        mine = [record for record in self.records if len(record.text) == length]
        weights = np.array([sizes[record.cluster] ** -self.balance for record in mine])
        masks = torch.Generator().manual_seed(int(rng.integers(2**31)))
        while True:
            drawn = [mine[n] for n in rng.choice(len(mine), count, p=weights / weights.sum())]
            clean = torch.stack([model.vocab.encode(record.text, record.name) for record in drawn])
            levels = Levels(share=0.0).draw(count, masks)
            noisy = corrupt(clean, levels[torch.randperm(count, generator=masks)], model.vocab.size, masks)
            for tokens, record in zip(noisy, drawn, strict=True):
                yield State(tokens, "uniform", "", family_name(record.cluster))


def states_for(model: Model, data: Path | None, each: int | None = None) -> States:
    """Where the states of this kind of model come from; those of proteins begin with the sequences in a FASTA file."""
    if model.task.name == "sudoku":
        return SudokuStates(each=each or SudokuStates.each)
    if not speaks_protein(model.vocab):
        raise PairmiError(f"labels: {model.name} is no 9x9 Sudoku model and none of proteins; states can be drawn for these only")
    if data is None:
        raise PairmiError(f"labels: {model.name} is a model of proteins and needs --data FILE, a FASTA file")
    return ProteinStates(read_proteins(data, model.longest), each=each or ProteinStates.each)
