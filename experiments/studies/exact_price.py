"""The price of a rule in an exact world, in expectation: every branch of one-by-one decoding, without sampling."""

from dataclasses import dataclass
from itertools import count

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pairmi.counting import Counting
from pairmi.deferring import WAITS
from pairmi.draw import Streams, tempered
from pairmi.info import kl
from pairmi.pricing.sets import Sets, placed, rows_of
from pairmi.types import Backbone, Selector, State, Tokens, Turn


@dataclass(frozen=True)
class ExactPrice:
    """Every sequence that one-by-one decoding in the rule's own order can make, with its probability, loss and passes."""

    tokens: Int[Tensor, "S L"]
    mass: Float[Tensor, " S"]
    each: Float[Tensor, " S"]
    each_passes: Float[Tensor, " S"]

    @property
    def nats(self) -> float:
        """The price: the mean loss."""
        return float(self.mass @ self.each)

    @property
    def passes(self) -> float:
        """The mean number of passes."""
        return float(self.mass @ self.each_passes)


@dataclass(frozen=True)
class _Nodes:
    """Contexts with the probability of being in them and what was lost on the way: never more than finished sequences."""

    tokens: Tokens
    mass: Float[Tensor, " B"]
    lost: Float[Tensor, " B"]

    def pick(self, index: Int[Tensor, " R"]) -> "_Nodes":
        """Some of them, perhaps several times."""
        return _Nodes(self.tokens[index], self.mass[index], self.lost[index])


def _joined(parts: list[_Nodes]) -> _Nodes:
    return _Nodes(torch.cat([n.tokens for n in parts]), torch.cat([n.mass for n in parts]), torch.cat([n.lost for n in parts]))


def exact_price(world: Backbone, canvas: Int[Tensor, " L"], selector: Selector, seed: int = 0, temperature: float = 1.0) -> ExactPrice:
    """E sum over passes and members of KL(conditional || what it is drawn from at once), which equals KL(one by one || at once).

    At temperature 1 one by one is the world itself, so that this is the KL of `bench.exact.evaluate`. A rule that is itself random is
    walked with one realisation of its own noise, the same as there.
    """
    nothing = torch.zeros(1, dtype=torch.float64)
    nodes, turn = _Nodes(canvas[None], nothing + 1, nothing), 0
    state: State = {}
    ended: list[tuple[_Nodes, int]] = []
    while len(nodes.tokens):
        prediction = world(nodes.tokens)
        streams = Streams(seed, torch.zeros(len(nodes.tokens), dtype=torch.long), turn)
        meter = Counting(world)
        selection = selector(Turn(prediction, meter, streams, state))
        children, parent = _one_by_one(world, nodes, Sets(selection, prediction, meter), temperature)
        unfinished = (children.tokens == world.vocab.size).any(1)
        open_, full = torch.nonzero(unfinished)[:, 0], torch.nonzero(~unfinished)[:, 0]
        turn += 1
        ended.append((children.pick(full), turn))
        nodes, state = children.pick(open_), {name: value[parent[open_]] for name, value in selection.state.items()}
    whole = _joined([part for part, _ in ended])
    passes = torch.cat([torch.full((len(part.tokens),), number, dtype=torch.float64) for part, number in ended])
    return ExactPrice(whole.tokens, whole.mass, whole.lost, passes)


def _one_by_one(world: Backbone, nodes: _Nodes, sets: Sets, temperature: float) -> tuple[_Nodes, Int[Tensor, " C"]]:
    """The contexts after each node's set was filled one by one, with what filling it at once would have lost, and their parents."""
    parent, state, done, parents = torch.arange(len(nodes.tokens)), sets.begin(), list[_Nodes](), list[Tensor]()
    for n in count():
        asked = sets.ask(state, n, parent)
        more, full = torch.nonzero(asked.rank >= 0)[:, 0], torch.nonzero(asked.rank < 0)[:, 0]
        done.append(nodes.pick(full))
        parents.append(parent[full])
        if not len(more):
            break
        nodes, state = nodes.pick(more), rows_of(asked.state, more)
        parent, rank, own, late = (x[more] for x in (parent, asked.rank, asked.log_q, asked.waits))
        member = sets.member(parent, rank)
        conditional = tempered(world(nodes.tokens).log_probs[torch.arange(len(parent)), member].double(), temperature)
        lost = nodes.lost + torch.where(late, 0, kl(conditional, tempered(own, temperature)))
        row, symbol = sets.outcomes(conditional > -torch.inf, late)
        chance = torch.where(symbol == WAITS, 0, conditional[row, symbol]).exp()
        nodes, parent = _Nodes(placed(nodes.tokens[row], member[row], symbol), nodes.mass[row] * chance, lost[row]), parent[row]
        state = sets.after(rows_of(state, row), rank[row], symbol)
    return _joined(done), torch.cat(parents)
