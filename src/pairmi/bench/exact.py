"""What a decoder really does in an exact world: its whole output distribution, by walking every branch, without sampling noise."""

from dataclasses import dataclass
from itertools import count

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pairmi.backbones.tabular import Tabular
from pairmi.commit import acceptance, residual
from pairmi.counting import Counting
from pairmi.deferring import WAITS, Deferring
from pairmi.draw import Streams
from pairmi.pricing.sets import Sets, placed, rows_of
from pairmi.types import Selector, Tokens, Turn


@dataclass(frozen=True)
class Exact:
    """Expectations under the decoder's own output distribution q, and its distance from the truth p."""

    kl: float  # KL(p || q) in nats; infinite if q misses what p allows
    total_variation: float
    valid: float  # q(support of p)
    passes: float
    rows: float  # not a number where verified drafts are as long as what they hold lets them be
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
            spent = torch.nan if isinstance(selection.coupling, Deferring) else float((nodes.mass * needed).sum())
            passes, rows = passes + float(nodes.mass[needed > 0].sum()), rows + spent
        children, trial = _children(world, meter, nodes, Sets(selection, prediction, meter), verify)
        tested, accepted = tested + trial[0], accepted + trial[1]
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


def _children(world: Tabular, meter: Counting, nodes: _Nodes, sets: Sets, verify: bool) -> tuple[_Nodes, tuple[float, float]]:
    """Every outcome of filling the sets, rank by rank, with a rejection at each member if that is tested; and the mass tested and accepted.

    All impossible outcomes of a context are one dead child.
    """
    tokens, mass, parent, state = nodes.tokens, nodes.mass, torch.arange(len(nodes.tokens)), sets.begin()
    tested, accepted, out = 0.0, 0.0, list[tuple[Tensor, Tensor, Tensor, Tensor]]()
    for n in count():
        asked = sets.ask(state, n, parent)
        done, some = asked.rank < 0, torch.nonzero(asked.rank >= 0)[:, 0]
        out.append((tokens[done], mass[done], parent[done], torch.full_like(parent[done], verify)))
        tokens, mass, parent, rank, marginal, late = (x[some] for x in (tokens, mass, parent, asked.rank, asked.log_q, asked.waits))
        if not len(tokens):
            break
        state, member = rows_of(asked.state, some), sets.member(parent, rank)
        keep = mass[:, None] * marginal.exp()
        if verify and n:
            conditional = meter(tokens).log_probs[torch.arange(len(tokens)), member]
            keep = keep * acceptance(conditional, marginal)
            redraw = residual(conditional, marginal)
            redraw = (mass - keep.sum(1)).clamp_min(0)[:, None] * redraw / redraw.sum(1, keepdim=True) * ~late[:, None]
            tested, accepted = tested + float(mass[~late].sum()), accepted + float(keep[~late].sum())
            row, symbol = torch.nonzero(redraw > 0, as_tuple=True)
            rejected = tokens[row].scatter(1, member[row][:, None], symbol[:, None])
            out.append((rejected, redraw[row, symbol], parent[row], torch.zeros_like(row)))
        row, symbol = sets.outcomes(keep > 0, late)
        filled = placed(tokens[row], member[row], symbol)
        alive = world.consistent(filled).any(1)
        row, symbol, tokens = row[alive], symbol[alive], filled[alive]
        mass, parent = torch.where(symbol == WAITS, mass[row], keep[row, symbol]), parent[row]
        state = sets.after(rows_of(state, row), rank[row], symbol)
    tokens, mass, parent, ready = (torch.cat(parts) for parts in zip(*out, strict=True))
    lost = nodes.mass - torch.zeros_like(nodes.mass).index_add(0, parent, mass)
    dead = torch.nonzero(lost > 1e-13 * nodes.mass)[:, 0]
    tokens = torch.cat([tokens, torch.where(sets.selection.chosen[dead], world.vocab.size + 1, nodes.tokens[dead])])
    mass, parent, ready = torch.cat([mass, lost[dead]]), torch.cat([parent, dead]), torch.cat([ready, torch.zeros_like(dead)])
    memory = {name: value[parent] for name, value in sets.selection.state.items()}
    return _Nodes(tokens, mass, ready.bool(), memory), (tested, accepted)
