"""What a decoder really does in an exact world: its whole output distribution, by walking every branch, without sampling noise."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pairmi.backbones.tabular import Tabular
from pairmi.commit import acceptance, residual
from pairmi.counting import Counting
from pairmi.draw import Streams
from pairmi.pricing.sets import Sets
from pairmi.types import Prediction, Selection, Selector, Tokens, Turn


@dataclass(frozen=True)
class Exact:
    """Expectations under the decoder's own output distribution q, and its distance from the truth p."""

    kl: float  # KL(p || q) in nats; infinite if q misses what p allows
    total_variation: float
    valid: float  # q(support of p)
    passes: float
    rows: float
    accepted: float  # of the drafts that were put to the test; 1 where none was


@dataclass(frozen=True)
class _Nodes:
    """Contexts with the probability of being in them. A dead one has an impossible symbol (V + 1) in its filled cells."""

    tokens: Tokens
    mass: Float[Tensor, " B"]
    ready: Bool[Tensor, " B"]  # verification has already predicted here
    state: dict[str, Tensor]

    def merged(self) -> "_Nodes":
        """Equal contexts added up; contexts of a rule that remembers stay apart."""
        if self.state or not len(self.tokens):
            return self
        key = torch.cat([self.tokens, self.ready.long()[:, None]], dim=1)
        unique, place = torch.unique(key, dim=0, return_inverse=True)
        mass = torch.zeros(len(unique), dtype=torch.float64).index_add(0, place, self.mass)
        return _Nodes(unique[:, :-1], mass, unique[:, -1].bool(), {})


def evaluate(world: Tabular, canvas: Int[Tensor, " L"], selector: Selector, verify: bool = False, seed: int = 0) -> Exact:
    """Walk every branch of decoding `canvas` in `world` with symbols drawn at temperature 1.

    A rule that is itself random is walked with one realisation of its own noise, which the symbols do not depend on.
    """
    mask = world.vocab.size
    meter = Counting(world, piece=4096)
    ended = torch.zeros(len(world.support), dtype=torch.float64)
    nodes = _Nodes(canvas[None], torch.ones(1, dtype=torch.float64), torch.zeros(1, dtype=torch.bool), {})
    passes = rows = tested = accepted = 0.0
    turn = 0
    while len(nodes.tokens):
        prediction = meter(nodes.tokens)
        fresh = float(nodes.mass[~nodes.ready].sum())
        passes, rows = passes + fresh, rows + fresh
        streams = Streams(seed, torch.zeros(len(nodes.tokens), dtype=torch.long), turn)
        selection = selector(Turn(prediction, meter, streams, nodes.state))
        if verify:
            needed = selection.chosen.sum(1) - (selection.chosen.sum(1) == prediction.masked.sum(1)).long()
            passes, rows = passes + float(nodes.mass[needed > 0].sum()), rows + float((nodes.mass * needed).sum())
            children, trial = _verified_children(world, meter, nodes, Sets(selection, prediction, meter))
            tested, accepted = tested + trial[0], accepted + trial[1]
        elif selection.coupling is not None:
            children = _coupled_children(world, nodes, Sets(selection, prediction, meter))
        else:
            children = _children(world, nodes, prediction, selection)
        full = ~(children.tokens == mask).any(1)
        alive, which = _ends(world, children.tokens[full])
        ended.index_add_(0, which, children.mass[full][alive])
        keep = ~full & (children.mass > 0)
        state = {name: value[keep] for name, value in children.state.items()}
        nodes = _Nodes(children.tokens[keep], children.mass[keep], children.ready[keep], state).merged()
        turn += 1
    return _summary(world, canvas, ended, passes, rows, accepted / tested if tested else 1.0)


def _summary(world: Tabular, canvas: Tensor, ended: Tensor, passes: float, rows: float, accepted: float) -> Exact:
    truth = world.posterior(canvas[None])[0]
    valid = float(ended.sum())
    kl = torch.where(truth > 0, truth * (truth / ended).log(), 0).sum()
    return Exact(float(kl), float(0.5 * ((truth - ended).abs().sum() + max(0.0, 1 - valid))), valid, passes, rows, accepted)


def _ends(world: Tabular, tokens: Tokens) -> tuple[Bool[Tensor, " F"], Int[Tensor, " A"]]:
    """Which complete sequences are in the support, and where."""
    fits = world.consistent(tokens) if len(tokens) else torch.zeros(0, len(world.support), dtype=torch.bool)
    alive = fits.any(1)
    return alive, fits[alive].long().argmax(1)


def _completions(world: Tabular, tokens: Tokens, chosen: Bool[Tensor, "B L"]) -> tuple[Int[Tensor, "C L"], Int[Tensor, " C"]]:
    """Every way to fill the chosen positions of each context that some sequence of the support allows, and its context."""
    parent, member = torch.nonzero(world.consistent(tokens), as_tuple=True)
    filled = torch.where(chosen[parent], world.support[member], tokens[parent])
    unique = torch.unique(torch.cat([parent[:, None], filled], dim=1), dim=0)
    return unique[:, 1:], unique[:, 0]


def _children(world: Tabular, nodes: _Nodes, prediction: Prediction, selection: Selection) -> _Nodes:
    """Independent draws from the marginals at the chosen positions; all impossible outcomes of a context are one dead child."""
    chosen, size = selection.chosen, world.vocab.size
    tokens, parent = _completions(world, nodes.tokens, chosen)
    log_p = prediction.log_probs[parent].gather(2, tokens.clamp_max(size - 1)[:, :, None])[:, :, 0]
    mass = nodes.mass[parent] * torch.where(chosen[parent], log_p, 0).sum(1).exp()
    return _with_dead(nodes, selection, tokens, mass, parent, size)


def _with_dead(nodes: _Nodes, selection: Selection, tokens: Tokens, mass: Tensor, parent: Tensor, size: int) -> _Nodes:
    """The children of contexts, with one more for what they lack in probability."""
    chosen, lost = selection.chosen, nodes.mass - torch.zeros_like(nodes.mass).index_add(0, parent, mass)
    dead = torch.nonzero(lost > 1e-13 * nodes.mass)[:, 0]
    tokens = torch.cat([tokens, torch.where(chosen[dead], size + 1, nodes.tokens[dead])])
    parent, mass = torch.cat([parent, dead]), torch.cat([mass, lost[dead]])
    state = {name: value[parent] for name, value in selection.state.items()}
    return _Nodes(tokens, mass, torch.zeros(len(tokens), dtype=torch.bool), state)


def _coupled_children(world: Tabular, nodes: _Nodes, sets: Sets) -> _Nodes:
    """Draws rank by rank, each shifted by those before it; all impossible outcomes of a context are one dead child."""
    size, parent, tokens, mass, state = sets.size, torch.arange(len(nodes.tokens)), nodes.tokens, nodes.mass, sets.begin()
    done: list[tuple[Tensor, Tensor, Tensor]] = []
    for n in range(int(size.max())):
        full, more = size[parent] == n, size[parent] > n
        done.append((tokens[full], mass[full], parent[full]))
        tokens, mass, parent, state = tokens[more], mass[more], parent[more], {name: value[more] for name, value in state.items()}
        member = (sets.order[parent] == n).long().argmax(1)
        log_p = sets.drawn_from(state, n, parent, member)
        row, symbol = torch.nonzero(log_p > -torch.inf, as_tuple=True)
        after = tokens[row].scatter(1, member[row][:, None], symbol[:, None])
        alive = world.consistent(after).any(1)
        row, symbol, tokens = row[alive], symbol[alive], after[alive]
        mass, parent = mass[row] * log_p[row, symbol].exp(), parent[row]
        state = sets.after({name: value[row] for name, value in state.items()}, n, symbol)
    tokens, mass, parent = (torch.cat(parts) for parts in zip(*done, (tokens, mass, parent), strict=True))
    return _with_dead(nodes, sets.selection, tokens, mass, parent, world.vocab.size)


def _verified_children(world: Tabular, meter: Counting, nodes: _Nodes, sets: Sets) -> tuple[_Nodes, tuple[float, float]]:
    """Every outcome of verification: a rejection at each member, or all accepted; and the mass that was tested and accepted."""
    order, size, prediction = sets.order, sets.size, sets.prediction
    tokens, parent = _completions(world, nodes.tokens, order == 0)
    first = (order[parent] == 0).long().argmax(1)
    pick = tokens.gather(1, first[:, None])
    mass = nodes.mass[parent] * prediction.log_probs[parent, first].gather(1, pick)[:, 0].exp()
    state = sets.after({name: value[parent] for name, value in sets.begin().items()}, 0, pick[:, 0])
    out: list[tuple[Tensor, Tensor, Tensor, bool]] = []
    tested = accepted = 0.0
    for n in range(1, int(size.max()) + 1):
        done = size[parent] == n
        out.append((tokens[done], mass[done], parent[done], True))
        tokens, mass, parent, state = tokens[~done], mass[~done], parent[~done], {name: value[~done] for name, value in state.items()}
        if not len(tokens):
            break
        member = (order[parent] == n).long().argmax(1)
        conditional = meter(tokens).log_probs[torch.arange(len(tokens)), member]
        marginal = sets.drawn_from(state, n, parent, member)
        keep = mass[:, None] * marginal.exp() * acceptance(conditional, marginal)
        redraw = residual(conditional, marginal)
        redraw = (mass - keep.sum(1)).clamp_min(0)[:, None] * redraw / redraw.sum(1, keepdim=True)
        tested, accepted = tested + float(mass.sum()), accepted + float(keep.sum())
        row, symbol = torch.nonzero(redraw > 0, as_tuple=True)
        out.append((tokens[row].scatter(1, member[row][:, None], symbol[:, None]), redraw[row, symbol], parent[row], False))
        row, symbol = torch.nonzero(keep > 0, as_tuple=True)
        tokens, mass, parent = tokens[row].scatter(1, member[row][:, None], symbol[:, None]), keep[row, symbol], parent[row]
        state = sets.after({name: value[row] for name, value in state.items()}, n, symbol)
    parents = torch.cat([part[2] for part in out])
    ready = torch.cat([torch.full_like(part[2], part[3], dtype=torch.bool) for part in out])
    memory = {name: value[parents] for name, value in sets.selection.state.items()}
    children = _Nodes(torch.cat([part[0] for part in out]), torch.cat([part[1] for part in out]), ready, memory)
    return children, (tested, accepted)
