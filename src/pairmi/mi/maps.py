"""What depends on what in a complete sequence: four ways to measure it, and the normal forms of the result."""

from dataclasses import dataclass
from itertools import combinations
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pairmi.counting import Counting
from pairmi.draw import Streams, gumbel
from pairmi.info import apc, kl, pairs
from pairmi.mi.probe import Probe
from pairmi.types import Backbone, PairmiError

Sequence = Int[Tensor, " L"]
Some = Bool[Tensor, " L"]
Tried = Int[Tensor, "L S"]
Scores = Float[Tensor, "L L"]
By = Literal["mi", "jacobian", "substitution", "masking"]
Symmetrise = Literal["mean", "max", "none"]
UNITS = {"mi": "nats", "jacobian": "norm of log-probabilities", "substitution": "change of log-odds", "masking": "nats"}
TITLES = {"mi": "mutual information", "jacobian": "categorical Jacobian", "substitution": "substitution", "masking": "masking"}
SMALL, FEW = 64, 16  # symbols: up to which all are tried, and how many otherwise
UNLIKELY = -30.0  # log-probability: what is less likely is as impossible; it keeps minus infinity out of the Jacobian's differences
LEAST = 1e-4  # in log-odds probabilities are no closer to 0 and 1: symbols that have no chance before and after do not count


@dataclass(frozen=True)
class Way:
    """How a map is made.

      mi            mutual information, averaged over contexts in which two of `blocks` random blocks are unknown; `deals` times
      jacobian      the categorical Jacobian: every symbol at i, the change of all beliefs
      substitution  another symbol at i: the largest change of the log-odds at j, where one of `blocks` random blocks is unknown
      masking       what the symbol at i tells of j, where one of `blocks` random blocks is unknown: the cheapest, blocks (L + 1) rows
    Before symmetrising, entries are [changed i, observed j].
    """

    by: By = "mi"
    apc: bool = False
    symmetrise: Symmetrise = "mean"  # `none` leaves both directions
    symbols: int | None = None  # tried at a position (jacobian, substitution), its own included; None = all up to 64, else 16
    drawn: bool = False  # these are drawn from the model's beliefs there; else they are the likeliest
    blocks: int = 4
    deals: int = 2
    floor: float = 0.01  # nats that pruning may change in an entry (mi)
    batch_rows: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, known in (("by", self.by, get_args(By)), ("symmetrise", self.symmetrise, get_args(Symmetrise))):
            if value not in known:
                raise PairmiError(f"map({name}={value!r}): expected one of {', '.join(known)}")
        if self.symbols is not None and self.symbols < 2:
            raise PairmiError(f"map(symbols={self.symbols}): at least 2, the one in the sequence and another")
        if self.blocks < 2 or self.deals < 1:
            raise PairmiError(f"map(blocks={self.blocks}, deals={self.deals}): at least two blocks and one deal")
        Probe("joint", self.floor, self.batch_rows)  # which refuses what cannot be

    @property
    def directed(self) -> bool:
        """Whether the result has two directions."""
        return self.symmetrise == "none"

    def measure(self, backbone: Backbone, sequence: Sequence) -> tuple[Scores, int]:
        """The map of a sequence, on its device, and the rows that were evaluated for it."""
        meter = Counting(backbone, self.batch_rows)
        with torch.inference_mode():
            matrix = self._measured(meter, sequence)
            meter.complain()
            if self.symmetrise != "none":
                other = matrix.t()
                matrix = 0.5 * (matrix + other) if self.symmetrise == "mean" else torch.maximum(matrix, other)
            return (apc(matrix) if self.apc else matrix), meter.rows

    def _measured(self, meter: Counting, sequence: Sequence) -> Scores:
        if self.by == "mi":
            masks = contexts(len(sequence), self.blocks, self.deals, self.seed)
            return averaged_mi(meter, sequence, masks, Probe("joint", self.floor, self.batch_rows))
        if self.by == "masking":
            return masking_information(meter, sequence, self.blocks, self.seed, batch_rows=self.batch_rows)
        symbols = self.symbols_of(meter, sequence)
        if self.by == "jacobian":
            return categorical_jacobian(meter, sequence, symbols, self.batch_rows, self.symmetrise == "mean")
        return log_odds_changes(meter, sequence, symbols, self.blocks, self.batch_rows, self.seed)

    def symbols_of(self, meter: Counting, sequence: Sequence) -> Tried:
        """What is tried at each position: the symbol that is there, then others; which ones costs L rows, unless it is all."""
        length, size, device = len(sequence), meter.vocab.size, sequence.device
        count = min(size, self.symbols or (size if size <= SMALL else FEW))
        others = torch.zeros(length, size, dtype=torch.float64, device=device)
        if count < size:
            places = torch.arange(length, device=device)
            for some in places.split(self.batch_rows):
                found = meter(replaced(sequence, some, torch.full_like(some, size)[:, None])).log_probs
                others[some] = found[torch.arange(len(some), device=device), some].double()
            if self.drawn:  # without replacement: the highest of log p + Gumbel noise
                others += gumbel(Streams(self.seed, places).uniform("symbols", size))
        others.scatter_(1, sequence[:, None], torch.inf)
        return others.sort(dim=1, descending=True, stable=True).indices[:, :count]


def replaced(sequence: Sequence, places: Int[Tensor, " N"], symbols: Int[Tensor, "N S"]) -> Int[Tensor, "N*S L"]:
    """The sequence with one position replaced: by each of its symbols, position after position."""
    rows = sequence.repeat(*symbols.shape, 1)
    return rows.scatter_(2, places[:, None, None].expand(-1, symbols.shape[1], 1), symbols[:, :, None]).flatten(0, 1)


def dealt(length: int, blocks: int, rng: torch.Generator) -> Int[Tensor, " L"]:
    """The number of the block that each position is dealt into, at random, blocks as equal as can be."""
    return torch.randperm(length, generator=rng) % blocks


def contexts(length: int, blocks: int, deals: int, seed: int) -> Bool[Tensor, "C L"]:
    """What random contexts mask that leave no pair out: in each deal every two blocks once, 2 / blocks of the sequence."""
    rng = torch.Generator().manual_seed(seed)
    every = [dealt(length, blocks, rng) for _ in range(deals)]
    return torch.stack([(block == one) | (block == other) for block in every for one, other in combinations(range(blocks), 2)])


def averaged_mi(meter: Counting, sequence: Sequence, masks: Bool[Tensor, "C L"], probe: Probe) -> Scores:
    """The mean over the contexts in which both positions are unknown, in nats; a deal costs (blocks - 1) L V rows, less what is pruned."""
    masks = masks[masks.sum(1) > 1].to(sequence.device)  # of fewer there is no pair
    if not len(masks):
        return torch.zeros(len(sequence), len(sequence), dtype=torch.float64, device=sequence.device)
    found = probe.measure(meter(sequence.masked_fill(masks, meter.vocab.size)), meter)
    return found.directed.sum(0) / pairs(masks).sum(0).clamp_min(1)


def categorical_jacobian(meter: Counting, sequence: Sequence, symbols: Tried, batch_rows: int = 256, symmetric: bool = True) -> Scores:
    """sqrt(sum over symbols a, b of J[i, a, j, b]^2), J centred in each index and symmetrised (Zhang et al. 2024); L S rows.

    J[i, a, j, b] is the logit of b at j after a was put at i, less the one before; a and b are among the `symbols` of i and of j.
    Centring removes what does not depend on all four indices, so the unchanged sequence is not needed, and log-probabilities serve as
    well as logits. Memory: two tensors of (L S)^2 numbers.
    """
    length, size = symbols.shape
    rows = replaced(sequence, torch.arange(length, device=sequence.device), symbols)
    moved = torch.cat([meter(piece).log_probs.gather(2, symbols.expand(len(piece), -1, -1)) for piece in rows.split(batch_rows)])
    jacobian = moved.view(length, size, length, size).clamp_min(UNLIKELY)
    for index in range(4):
        jacobian -= jacobian.mean(index, keepdim=True)
    if symmetric:
        jacobian = 0.5 * (jacobian + jacobian.permute(2, 3, 0, 1))
    return jacobian.square_().sum((1, 3), dtype=torch.float64).sqrt().fill_diagonal_(0)


def log_odds_changes(meter: Counting, sequence: Sequence, symbols: Tried, blocks: int, batch_rows: int = 256, seed: int = 0) -> Scores:
    """max over symbols a, b of |log odds(X_j = b | X_i = a) - log odds(X_j = b | X_i = x_i)|: [replaced i, observed j].

    The nucleotide dependency of Tomaz da Silva et al. (2025), with the observed positions masked: a block at a time, but for i. `blocks` =
    L masks j alone. The first of `symbols` are those of the sequence. Cost: blocks L S rows.
    """
    length, size = symbols.shape
    block = dealt(length, blocks, torch.Generator().manual_seed(seed)).to(sequence.device)
    changes = torch.zeros(length, length, dtype=torch.float64, device=sequence.device)
    for inside in (block == number for number in range(min(blocks, length))):
        canvas = sequence.masked_fill(inside, meter.vocab.size)
        for some in torch.arange(length, device=sequence.device).split(max(1, batch_rows // size)):
            found = meter(replaced(canvas, some, symbols[some])).log_probs[:, inside].unflatten(0, (-1, size))
            odds = torch.logit(found.double().exp(), eps=LEAST)
            moved = (odds[:, 1:] - odds[:, :1]).abs().transpose(1, 2).flatten(2)
            changes[some[:, None], inside.nonzero()[:, 0]] = moved.amax(2) if moved.shape[2] else 0.0  # of one symbol alone
    return changes.fill_diagonal_(0)


def masking_information(
    meter: Counting,
    sequence: Sequence,
    blocks: int = 4,
    seed: int = 0,
    *,
    sources: Some | None = None,
    targets: Some | None = None,
    batch_rows: int = 256,
) -> Scores:
    """KL(p(X_j | C, x_i) || p(X_j | C)) in nats: [masked i, observed j], of all positions or from `sources` to `targets`.

    C is the sequence without i and without the block of j, of `blocks` that the targets are dealt into; `blocks` >= L masks i and j alone.
    Its mean over symbols x_i that are drawn from p(X_i | C) is the mutual information of i and j given C (form `kl` of the probe); here
    it is told by the symbol that the sequence has, so one row serves i and a whole block. Cost: blocks (L + 1) rows.
    """
    every = torch.ones_like(sequence, dtype=torch.bool)
    sources, targets = every if sources is None else sources, every if targets is None else targets
    information = torch.zeros(len(sequence), len(sequence), dtype=torch.float64, device=sequence.device)
    of, block = torch.nonzero(sources)[:, 0], torch.full_like(sequence, -1)
    block[targets] = dealt(int(targets.sum()), blocks, torch.Generator().manual_seed(seed)).to(sequence.device)
    for inside in (block == number for number in range(int(block.max()) + 1)):
        canvas, other = sequence.masked_fill(inside, meter.vocab.size), sequence.masked_fill(~inside, meter.vocab.size)
        rows = torch.cat([replaced(canvas, of, other[of, None]), canvas[None]])  # i seen or masked; as it is
        found = torch.cat([meter(some).log_probs[:, inside] for some in rows.split(batch_rows)])
        changed, base = found[:-1], found[-1:].expand_as(found[:-1])
        shown = inside[of][:, None, None]  # i is masked in the canvas: its own row sees it
        told = kl(torch.where(shown, changed, base), torch.where(shown, base, changed))
        information[of[:, None], torch.nonzero(inside)[:, 0]] = told
    return information.fill_diagonal_(0)
