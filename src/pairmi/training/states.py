"""States to learn from, of Sudoku, proteins and text: random masks, and what decoders really see when they solve and generate."""

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from pairmi.commit import Sampling
from pairmi.decoding import iter_decode
from pairmi.model import Model
from pairmi.spec import rule
from pairmi.tasks.protein.fasta import Record, open_text, read_proteins
from pairmi.tasks.protein.residues import speaks_protein
from pairmi.tasks.sudoku.rules import EMPTY
from pairmi.types import PairmiError, Tokens

LABELS = 4_000_000  # where the seeds of labelled grids begin: apart from those of training, validation and test puzzles
RULES = ("sequential", "top-k:k=4", "eb:budget=0.05", "eb:budget=0.5", "threshold:threshold=0.9", "mi-bound:mi=structural,budget=0.1")
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

    def draw(self, model: Model, seed: int, shard: int, count: int) -> list[State]:
        """Different states of one length, a function of the arguments alone."""


def corrupt(tokens: Tokens, levels: Float[Tensor, " B"], mask: int, rng: torch.Generator) -> Tokens:
    """Mask each position independently with the probability of its row (the paper's eq. 1), at least one per row."""
    chance = torch.rand(tokens.shape, generator=rng)
    hit = (chance < levels[:, None]) | (chance == chance.amin(1, keepdim=True))
    return tokens.masked_fill(hit, mask)


def short_hash(data: bytes) -> str:
    """The first 16 digits of a hash."""
    return hashlib.sha256(data).hexdigest()[:16]


def grid_name(grid: Int[Tensor, " L"]) -> str:
    """A name for a complete sequence: of its tokens in one byte each, or in four where they need more."""
    tokens = grid.cpu().numpy()
    return short_hash(tokens.astype(np.uint8 if tokens.max(initial=0) < 256 else np.int32).tobytes())


def family_name(cluster: str) -> str:
    """A name for a family, by whose hash its states are put into the training, validation or test part."""
    return short_hash(cluster.encode())


def masked(lots: Iterable[Sequence[tuple[Int[Tensor, " L"], str]]], mask: int, seed: int, unknown: range) -> Iterator[State]:
    """Complete sequences with the names of their grids, masked lot by lot at t ~ U[0, 1]: those with so many `unknown` positions."""
    rng = torch.Generator().manual_seed(seed)
    for lot in lots:
        levels = (torch.arange(len(lot)) + torch.rand(len(lot), generator=rng)) / len(lot)  # stratified: one from each of so many slices
        noisy = corrupt(torch.stack([clean for clean, _ in lot]), levels[torch.randperm(len(lot), generator=rng)], mask, rng)
        for tokens, count, (_, grid) in zip(noisy, (noisy == mask).sum(1).tolist(), lot, strict=True):
            if count in unknown:
                yield State(tokens, "uniform", "", grid)


def visited(
    model: Model, starts: Tokens, source: str, sampling: Sampling, rules: Sequence[str], each: int, shard: int, grids: Tokens | None = None
) -> list[State]:
    """From the trajectory of each canvas, at `each` random passes, states with at least two unknown positions and one known.

    The rules take turns; the shard decides who begins.
    """
    states, numbers, mask = list[State](), torch.arange(len(starts)), model.vocab.size
    for place, spec in enumerate(rules):
        mine = numbers[(numbers + shard) % len(rules) == place]
        if not len(mine):
            continue
        seen: list[list[Tensor]] = [[] for _ in mine]
        last = starts[mine].clone()
        for step in iter_decode(model, starts[mine], rule(spec, model), sampling, mine):
            last[step.rows] = step.tokens.cpu()
            before = step.tokens.masked_fill(step.committed, mask).cpu()
            for row, tokens, unknown in zip(step.rows.tolist(), before, (before == mask).sum(1).tolist(), strict=True):
                if 2 <= unknown < starts.shape[1]:
                    seen[row].append(tokens)
        rng = np.random.default_rng((sampling.seed, shard, place))
        for row, passes in enumerate(seen):
            grid = grid_name(last[row] if grids is None else grids[mine[row]])
            picked = sorted(rng.choice(len(passes), min(each, len(passes)), replace=False).tolist()) if passes else []
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
        from pairmi.tasks.sudoku.puzzles import unique_puzzles  # which needs numba: nothing else here does

        assert model.length is not None
        numbers = np.random.SeedSequence((LABELS + seed, shard)).generate_state(4)
        first, second, sampling, levels = (int(number) >> 1 for number in numbers)
        runs = round(count * self.solving / self.each)
        puzzles = unique_puzzles(runs, first, self.givens)
        greedy, ways = Sampling(sampling, greedy=True), (self.rules, self.each, shard)
        found = visited(model, puzzles.canvases, "solving", greedy, *ways, puzzles.solutions)
        boards = torch.full((round(count * self.generating / self.each), model.length), EMPTY)
        found += visited(model, boards, "generating", Sampling(sampling), *ways)
        return distinct(itertools.chain(found, uniform_masks(count, second, levels)), count)


def uniform_masks(count: int, seed: int, levels: int) -> Iterator[State]:
    """Random complete grids, masked at stratified levels, without end."""
    from pairmi.tasks.sudoku.puzzles import complete_grids

    lots = ([(grid, grid_name(grid)) for grid in complete_grids(count, number % 2**31)] for number in itertools.count(seed))
    return masked(lots, EMPTY, levels, range(1, 82))


def length_of(lengths: Iterable[int], seed: int, shard: int) -> int:
    """Of the states of a shard: quantiles of the sequences' lengths, evenly spread however many shards there are."""
    ranked = sorted(lengths)
    return ranked[int((np.random.default_rng(LABELS + seed).random() + GOLDEN * shard) % 1 * len(ranked))]


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
        digest = short_hash("".join(f"{record.cluster} {record.text}\n" for record in self.records).encode())
        settings = {"generating": self.generating, "each": self.each, "rules": self.rules, "balance": self.balance}
        return {"name": "protein", "sequences": len(self.records), "fingerprint": digest} | settings

    def draw(self, model: Model, seed: int, shard: int, count: int) -> list[State]:
        """Trajectories first; what is missing then is filled up with masked sequences. No state twice, none without a pair."""
        length, rng = length_of((len(one.text) for one in self.records), seed, shard), np.random.default_rng((LABELS + seed, shard))
        boards = torch.full((round(count * self.generating / self.each), length), model.vocab.size)
        found = visited(model, boards, "generating", Sampling(int(rng.integers(2**31))), self.rules, self.each, shard)
        sizes = Counter(record.cluster for record in self.records)
        mine = [record for record in self.records if len(record.text) == length]
        pool = [(model.vocab.encode(record.text, record.name), family_name(record.cluster)) for record in mine]
        weights = np.array([sizes[record.cluster] ** -self.balance for record in mine])
        lots = ([pool[n] for n in rng.choice(len(pool), count, p=weights / weights.sum())] for _ in range(PATIENCE))
        natural = masked(lots, model.vocab.size, int(rng.integers(2**31)), range(2, length))
        chosen = distinct(itertools.chain(found, natural), count)
        if len(chosen) < count:
            raise PairmiError(
                f"labels: sequences of {length} residues give {len(chosen)} different states, {count} are wanted; "
                "give more or longer sequences, or a smaller --shard"
            )
        return chosen


@dataclass(frozen=True)
class TextStates:
    """Pieces of the lines of a text, masked at t ~ U[0, 1]; all states of a shard are as long, and a line is whole in one part."""

    lines: Sequence[Tensor]  # of tokens, each of its own length

    def about(self) -> dict[str, Any]:
        """What they depend on."""
        return {"name": "text", "lines": len(self.lines), "fingerprint": grid_name(torch.cat(list(self.lines)))}

    def draw(self, model: Model, seed: int, shard: int, count: int) -> list[State]:
        """The length is one that a share of all lines have, from a tenth to all of them: from each a piece that begins anywhere."""
        rng = np.random.default_rng((LABELS + seed, shard))
        length = max(2, int(np.quantile([len(line) for line in self.lines], rng.uniform(0, 0.9))))
        long = [line for line in self.lines if len(line) >= length]

        def lots() -> Iterator[list[tuple[Tensor, str]]]:
            for _ in range(PATIENCE):
                chosen = [long[n] for n in rng.integers(len(long), size=count)]
                starts = [int(rng.integers(len(line) - length + 1)) for line in chosen]
                yield [(line[start : start + length], grid_name(line)) for line, start in zip(chosen, starts, strict=True)]

        return distinct(masked(lots(), model.vocab.size, int(rng.integers(2**31)), range(2, length + 1)), count)


def read_text(model: Model, file: Path) -> TextStates:
    """The lines of a file, plain or gzipped, that the tokenizer takes whole."""
    found = []
    with open_text(file) as lines:
        for line in lines:
            try:
                tokens = model.vocab.encode(line.strip())[: model.longest]
            except PairmiError:  # a letter that the model does not know
                continue
            found += [tokens] if len(tokens) > 1 else []
    if not found:
        raise PairmiError(f"labels: {file} has no line of at least two tokens that {model.name} knows; give a text of its language")
    return TextStates(found)


def states_for(model: Model, data: Path | None, each: int | None = None) -> States:
    """Where the states of this kind of model come from; those of proteins begin with a FASTA file, those of text with its lines."""
    if model.task.name == "sudoku":
        return SudokuStates(each=each or SudokuStates.each)
    proteins = speaks_protein(model.vocab)
    if not proteins and model.vocab.tokenizer is None:
        raise PairmiError(
            f"labels: {model.name} is no 9x9 Sudoku model and none of proteins or of text; states can be drawn for these only"
        )
    if data is None:
        kind = "proteins and needs --data FILE, a FASTA file" if proteins else "text and needs --data FILE, with a sentence in each line"
        raise PairmiError(f"labels: {model.name} is a model of {kind}")
    return ProteinStates(read_proteins(data, model.longest), each=each or ProteinStates.each) if proteins else read_text(model, data)
