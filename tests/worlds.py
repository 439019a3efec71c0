"""The worlds that the tests live in: random tables with random contexts, and a model that contradicts itself."""

from dataclasses import dataclass

import torch
from hypothesis import settings
from hypothesis import strategies as st
from jaxtyping import Float
from torch import Tensor

from pairmi import decoding
from pairmi.backbones.tabular import Tabular
from pairmi.commit import Sampling
from pairmi.model import Task
from pairmi.tasks.tables import LETTERS, World, markov_chain, parity, permutations, potts_grid, random_table
from pairmi.types import Backbone, Positions, Prediction, Selector, Tokens, Vocab


def many(examples: int) -> settings:
    """So many examples, the same ones in every run."""
    return settings(max_examples=examples, deadline=None, derandomize=True, database=None)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def total_correlation(table: Tabular, tokens: Tokens, chosen: Positions) -> Float[Tensor, " B"]:
    """Sum of the entropies less the joint entropy of the chosen positions: what drawing them at once loses."""
    single = table(tokens).log_probs.exp()
    entropies = -torch.xlogy(single, single).sum(2)
    out = torch.zeros(len(tokens), dtype=torch.float64)
    for row, (weights, positions) in enumerate(zip(table.posterior(tokens), chosen, strict=True)):
        if not (weights.any() and positions.any()):  # no completion: all is uniform, nothing is lost
            continue
        _, group = torch.unique(table.support[:, positions], dim=0, return_inverse=True)
        joint = torch.zeros(int(group.max()) + 1, dtype=torch.float64).index_add(0, group, weights)
        out[row] = entropies[row, positions].sum() + torch.xlogy(joint, joint).sum()
    return out.clamp_min(0)


def tabular(world: World) -> Tabular:
    return Tabular(world.support, world.weights, world.symbols)


def unknown(backbone: Backbone, rows: int = 1) -> Tokens:
    """Canvases of which nothing is given."""
    return torch.full((rows, backbone.length), backbone.vocab.size)


@dataclass(frozen=True)
class Linked(Task):
    """A task with a given structure."""

    links: torch.Tensor
    name: str = "linked"

    def graph(self, length: int) -> torch.Tensor:
        return self.links


@dataclass(frozen=True)
class Decoded:
    """The results of canvases of one length side by side."""

    tokens: Tokens
    passes: torch.Tensor
    rows: torch.Tensor
    probe_rows: torch.Tensor


def decode(
    backbone: Backbone,
    tokens: Tokens,
    selector: Selector,
    sampling: Sampling,
    index: torch.Tensor | None = None,
    batch_size: int = 256,
) -> Decoded:
    """Canvases of one length, and what came of them as tensors."""
    numbers = None if index is None else index.tolist()
    results = decoding.decode(backbone, tokens, selector, sampling, numbers, batch_size)
    costs = (torch.tensor([getattr(one, name) for one in results]) for name in ("passes", "rows", "probe_rows"))
    return Decoded(torch.stack([one.tokens for one in results]), *costs)


def same_in_every_batch(backbone: Backbone, canvases: Tokens, selector: Selector, sampling: Sampling) -> Decoded:
    """What is decoded all at once, if it comes out the same one by one and by fours."""
    whole = decode(backbone, canvases, selector, sampling)
    for size in (1, 4):
        other = decode(backbone, canvases, selector, sampling, batch_size=size)
        assert torch.equal(whole.tokens, other.tokens)
        assert torch.equal(whole.rows, other.rows)
    return whole


@dataclass(frozen=True)
class Incoherent:
    """Random beliefs, drawn anew for each context: the conditionals are those of no joint distribution."""

    length: int
    size: int
    seed: int
    sharpness: float

    @property
    def vocab(self) -> Vocab:
        return Vocab(tuple(LETTERS[: self.size]))

    def __call__(self, tokens: Tokens) -> Prediction:
        beliefs = torch.empty(len(tokens), self.length, self.size, dtype=torch.float64)
        for belief, row in zip(beliefs, tokens.tolist(), strict=True):
            belief.normal_(generator=generator(hash((self.seed, *row)) % 2**63))
        log_probs = torch.log_softmax(self.sharpness * beliefs, dim=-1)
        return Prediction(tokens, log_probs, log_probs.exp())


@dataclass(frozen=True)
class Fixed:
    """A backbone that says the same whatever it is asked: `log_probs` for every row, [L, V]."""

    log_probs: torch.Tensor
    size: int

    @property
    def vocab(self) -> Vocab:
        return Vocab(tuple(LETTERS[: self.size]))

    @property
    def length(self) -> int:
        return len(self.log_probs)

    def __call__(self, tokens: Tokens) -> Prediction:
        log_probs = self.log_probs.expand(len(tokens), -1, -1)
        return Prediction(torch.full(log_probs.shape[:2], self.size), log_probs, log_probs)


class Listening:
    """Hands everything on, and remembers how many rows came in each call."""

    def __init__(self, backbone: Backbone) -> None:
        self.backbone, self.vocab, self.length = backbone, backbone.vocab, backbone.length
        self.heard: list[int] = []

    def __call__(self, tokens: Tokens) -> Prediction:
        self.heard.append(len(tokens))
        return self.backbone(tokens)


@dataclass(frozen=True)
class Recipe:
    """The numbers of a random world; Hypothesis draws them and prints them when a test fails."""

    length: int
    size: int
    sparsity: float
    sharpness: float
    seed: int

    def contexts(self, own: torch.Tensor) -> Tokens:
        """Four canvases: an empty one, two of the world's `own` sequences in part, and one that may contradict it."""
        rng = generator(self.seed + 1)
        given = torch.cat([own[torch.randint(len(own), (3,), generator=rng)], torch.randint(self.size, (1, self.length), generator=rng)])
        hidden = torch.rand(4, self.length, generator=rng) < torch.tensor([1, 0.8, 0.5, 0.6])[:, None]
        return torch.where(hidden, self.size, given)

    def coherent(self) -> tuple[Tabular, Tokens]:
        """A table and contexts."""
        table = tabular(random_table(self.length, self.size, generator(self.seed), self.sparsity, self.sharpness))
        return table, self.contexts(table.support)

    def incoherent(self) -> tuple[Incoherent, Tokens]:
        """A model that contradicts itself, and contexts."""
        everything = torch.zeros(1, self.length, dtype=torch.long)
        return Incoherent(self.length, self.size, self.seed, 1.5 * self.sharpness), self.contexts(everything)


def recipes(longest: int = 4) -> st.SearchStrategy[Recipe]:
    """Worlds of all kinds, from flat to peaked, from full to almost deterministic."""
    sparsity, sharpness = st.sampled_from([0.0, 0.3, 0.7, 0.95]), st.floats(0, 5)
    return st.builds(Recipe, st.integers(1, longest), st.integers(1, 4), sparsity, sharpness, st.integers(0, 2**32))


SMALL = {  # consistent worlds that are quickly walked
    "markov": tabular(markov_chain(5, 3, generator(0))),
    "potts": tabular(potts_grid(2, 3, 2, 0.8)),
    "table": tabular(random_table(5, 3, generator(1), sparsity=0.5, sharpness=1.5)),
    "sparse": tabular(random_table(6, 2, generator(2), sparsity=0.9, sharpness=3.0)),
    "permutations": tabular(permutations(4)),
    "parity": tabular(parity(4)),
}
