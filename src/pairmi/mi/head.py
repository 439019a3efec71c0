"""The learned estimate of all pairwise mutual information from one pass: a few low-rank forms, mixed for each pair."""

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pairmi.info import entropy_of, pairs
from pairmi.mi.hops import Hop, mapped, openness, product_of, sigmoid
from pairmi.mi.trained_on import TrainedOn
from pairmi.types import Backbone, LogProbs, PairMatrix, PairmiError, Positions, Prediction, RowStreams, Tokens

FAR = 64  # distances from here on are alike
STEP = 16  # between the numbers of positions that rows are computed with
CACHED_PAIRS = 18_000  # whose features stay in the cache of a core
RELATING = 32  # units that read what a backbone knows of a pair
LARGEST = 8  # probabilities of a position that a head is shown where it is not shown all


@dataclass(frozen=True)
class LowRankConfig:
    """The shape of a `LowRankHead`; the defaults are the Sudoku head's."""

    width: int  # of one layer of the backbone
    symbols: int  # whose marginals it is shown; 0 = any number of them, of which it is shown the `LARGEST` probabilities in order
    layers: int = 1  # how many layers of the backbone are reported side by side
    length: int = 0  # of a backbone that takes one length only: positions then have an embedding; 0 = any length
    inner: int = 96
    forms: int = 16
    rank: int = 16
    mixer: int = 16
    places: int = 4  # learned features of where the two positions are: of the pair itself, or of their distance where any length may come
    relations: int = 0  # numbers that a backbone knows of a pair, such as by a structure: these features are then of them
    hops: int = 0  # how often paths through third positions correct the estimate
    edges: int = 4  # kinds of edges that these paths have
    reach: int = 0  # more open positions (in steps of `STEP`) take no hops, which cost most and say least there; 0 = all take them
    last_reach: int = 0  # more than this leave out the last hop alone; 0 = as many take it as the others

    def __post_init__(self) -> None:
        sizes = (self.width, self.layers, self.inner, self.forms, self.rank, self.mixer, self.places, self.edges)
        if min(sizes) < 1 or min(self.symbols, self.length, self.relations, self.hops, self.reach, self.last_reach) < 0:
            raise PairmiError(f"LowRankConfig: sizes must be >= 1 (symbols, length, relations, hops and reaches >= 0), got {self}")


class LowRankHead(nn.Module):
    """I_ij = sigmoid(mix(f_1(i, j), ..., f_K(i, j), e_ij, H_i, H_j)) min(H_i, H_j), both ways averaged.

    f_k(i, j) = u_ik^T diag(s_k) u_jk, symmetric and perhaps indefinite. u_i is computed once per position, from the layer-normed
    hidden states, the marginals (of a large alphabet the likeliest), the entropy and the place; a pair then costs K products of rank r,
    a learned e_ij that does not look at the canvas, and a small network on all of these: O(N D r + N^2 r). `hops` then correct the
    sigmoid's argument by what depends on each other through third positions (see `Hop`), where at most `reach` positions are open (the
    last hop: `last_reach`). The information bound I_ij <= min(H_i, H_j) holds by construction. A few rows at a time, so that their pairs
    stay in the cache, are computed over about their queried positions only (see `row_chunks`), each by products of its own: no bit of a
    row depends on its batch mates.
    """

    kind: ClassVar[str] = "low-rank"
    matrices: ClassVar[tuple[str, ...]] = ("inner.weight", "project.weight")  # which Muon trains

    def __init__(self, config: LowRankConfig) -> None:
        super().__init__()
        self.config = config
        self.trained_on: TrainedOn | None = None
        size = config.forms * config.rank
        self.inner = nn.Linear(config.layers * config.width + (config.symbols or LARGEST) + 1, config.inner)
        self.project = nn.Linear(config.inner, size)
        self.position = nn.Parameter(0.5 * torch.randn(config.length, config.inner)) if config.length else None
        signs = 1.0 - 2.0 * (torch.arange(config.rank) % 2)
        self.signs = nn.Parameter(config.rank**-0.5 * signs.expand(config.forms, -1).clone())
        self.told: Float[Tensor, "P L L"]  # of the pairs of one backbone, see `among`
        self.register_buffer("told", torch.zeros(config.places, 0, 0), persistent=False)
        self.relate = self.pair = None
        if config.relations:
            self.relate = nn.Sequential(nn.Linear(config.relations, RELATING), nn.GELU(), nn.Linear(RELATING, config.places))
        else:
            shape = (config.length, config.length) if config.length else (FAR,)
            self.pair = nn.Parameter(0.1 * torch.randn(config.places, *shape))
        self.mix = nn.Linear(config.forms + config.places + 2, config.mixer)
        self.out = nn.Parameter(config.mixer**-0.5 * torch.randn(config.mixer))
        self.bias = nn.Parameter(torch.tensor(-2.0))
        self.hops = nn.ModuleList(Hop(config.mixer, config.places, config.inner, config.edges) for _ in range(config.hops))

    def begin_at(self, share: float) -> None:
        """Let a fresh head say about this share of min(H_i, H_j) everywhere: one that begins far above its labels falls to 0 and stays."""
        self.bias.data.fill_(torch.logit(torch.tensor(share), eps=1e-4))

    def among(self, relations: Callable[[Int[Tensor, " R"]], Float[Tensor, "R L E"]], length: int) -> "LowRankHead":
        """The same weights for a backbone that knows this of the pairs of some of its positions with all."""
        assert self.relate is not None
        other = copy.copy(self)
        rows = torch.arange(length, device=self.bias.device).split(max(1, CACHED_PAIRS // length))
        other._buffers = {"told": torch.cat([self.relate(relations(some).to(self.bias.device)) for some in rows]).permute(2, 0, 1)}
        return other

    def about(self) -> dict[str, Any]:
        """Its shape, for the file that it is kept in."""
        return asdict(self.config)

    def forward(self, prediction: Prediction, backbone: Backbone, rng: RowStreams) -> PairMatrix:
        """The matrix of each row in float64, without gradients and without a look at the backbone."""
        with torch.inference_mode(False), torch.no_grad():
            return self.estimate(prediction).double()

    def outside(self, canvases: Prediction | Tokens) -> str | None:
        """In words what about canvases is unlike all that it was trained on; None = nothing, or nothing is known of its training."""
        return self.trained_on.outside(canvases) if self.trained_on else None

    def estimate(self, prediction: Prediction) -> PairMatrix:
        """The same with gradients, in normal form."""
        config, length = self.config, prediction.tokens.shape[1]
        queried = prediction.queried
        if config.hops:  # paths go through what is not asked for, too
            queried = prediction.masked & queried.any(1, keepdim=True)
        if config.relations and not self.told.numel():
            raise PairmiError("LowRankHead: reads what a backbone knows of pairs, and none has told it; load(..., head=FILE) does")
        only = config.length or self.told.shape[1] if prediction.places is None else 0
        check_prediction(self, prediction, config.layers * config.width, config.symbols, only)
        entropies = entropy_of(prediction).float()
        below = torch.nextafter(entropies, torch.zeros_like(entropies))  # what is at most this is at most what was rounded to float32
        caps = torch.where(queried, below, 0)  # which makes the pairs of all other positions 0
        shown = prediction.log_probs if config.symbols else largest(prediction.log_probs)
        everything = [x.flatten(0, 1) for x in (prediction.hidden, shown, entropies[:, :, None], caps)]
        matrix = entropies.new_zeros(len(queried), length, length)
        for rows, where in row_chunks(queried):
            places = (rows[:, None] * length + where).flatten()
            hidden, log_probs, known, most = (x.index_select(0, places).view(*where.shape, *x.shape[1:]) for x in everything)
            at = where if prediction.places is None else prediction.places[rows.expand(len(where))].gather(1, where)
            blocks = self._pairs(self._inner(hidden, log_probs, known, at), most, at)
            matrix.index_copy_(0, rows, spread(blocks, where, length)[: len(rows)])
        return torch.where(pairs(prediction.queried), matrix, 0) if config.hops and prediction.query is not None else matrix

    def _inner(
        self, hidden: Float[Tensor, "R N D"], log_probs: Float[Tensor, "R N V"], known: Float[Tensor, "R N 1"], where: Int[Tensor, "R N"]
    ) -> Float[Tensor, "R I N"]:
        """What each position is by itself; its entropy is known."""
        config = self.config
        normed = functional.layer_norm(hidden.float().unflatten(2, (config.layers, config.width)), (config.width,)).flatten(2)
        inputs = torch.cat([normed, log_probs.float().exp(), known], dim=2)
        shift = self.inner.bias
        if self.position is not None:
            shift = (shift + self.position).index_select(0, where.flatten()).unflatten(0, where.shape)
        return gelu(torch.baddbmm(shift, inputs, self.inner.weight.t().expand(len(inputs), -1, -1))).mT

    def _pairs(self, inner: Float[Tensor, "R I N"], caps: Float[Tensor, "R N"], where: Int[Tensor, "R N"]) -> Float[Tensor, "R N N"]:
        """The pairs of these positions: K + P + 2 features each, mixed by two small products."""
        (rows, count), forms = where.shape, self.config.forms
        u = mapped(self.project.weight, inner, self.project.bias).view(rows, forms, self.config.rank, count)
        bilinear = torch.bmm((u * self.signs[:, :, None]).flatten(0, 1).mT, u.flatten(0, 1)).view(rows, forms, -1)
        low, high = torch.minimum(caps[:, :, None], caps[:, None]), torch.maximum(caps[:, :, None], caps[:, None])
        places = self._places(where)
        of_forms, of_places, of_caps = self.mix.weight.split([forms, self.config.places, 2], dim=1)
        mixed = product_of(of_caps, torch.stack([low, high], dim=1).flatten(2)).add_(mapped(of_places, places, self.mix.bias))
        mixed = mixed.baddbmm_(of_forms.expand(rows, -1, -1), bilinear).relu_()
        low.diagonal(dim1=1, dim2=2).zero_()
        logit = mapped(self.out[None], mixed, self.bias[None])
        if hops := self._hops_among(count):
            open_to = openness(low).view(rows, 1, -1)
            for hop in hops:
                logit, mixed = hop(inner, open_to, logit, mixed, places)
        share = sigmoid(logit.view(rows, count, count))
        return (share + share.mT) * (0.5 * low)

    def _hops_among(self, count: int) -> list[nn.Module]:
        """Those that so many open positions take."""
        config = self.config
        near = not config.reach or count <= config.reach
        every = not config.last_reach or count <= config.last_reach
        return list(self.hops)[: None if every else -1] if near else []

    def _places(self, where: Int[Tensor, "R N"]) -> Float[Tensor, "S P N*N"]:
        """What is known of a pair from where it is: the same for all rows that have all positions."""
        known = self.told if self.pair is None else self.pair
        pair, length = known.flatten(1)[None], known.shape[1] if known.ndim == 3 else 0
        if where.shape[1] == length:
            return pair
        pair = pair.expand(len(where), -1, -1)
        index = crossed(where, length) if length else (where[:, :, None] - where[:, None]).abs().clamp_max(FAR - 1).flatten(1)
        return pair.gather(2, index[:, None].expand(-1, pair.shape[1], -1))


def largest(log_probs: LogProbs) -> Float[Tensor, "B L P"]:
    """Of the `LARGEST` likeliest symbols of each position, in order, whichever they are; -inf for those that do not exist."""
    found = log_probs.topk(min(LARGEST, log_probs.shape[2]), dim=2).values
    return functional.pad(found, (0, LARGEST - found.shape[2]), value=-torch.inf)


def summary(prediction: Prediction) -> Prediction:
    """All that a head without `symbols` reads of a prediction over a large alphabet, as one over `LARGEST` symbols."""
    tokens = torch.where(prediction.masked, LARGEST, 0)
    return replace(prediction, tokens=tokens, log_probs=largest(prediction.log_probs), entropies=entropy_of(prediction))


def gelu(x: Tensor) -> Tensor:
    """That of torch, which rounds the last elements of a batch in another way than the others; `erf` and `exp` do not."""
    return 0.5 * x * (1 + torch.erf(0.5**0.5 * x))


def row_chunks(queried: Positions) -> Iterator[tuple[Int[Tensor, " R"], Int[Tensor, "S N"]]]:
    """Rows that can be computed together, each with as many positions: those queried, and others up to a multiple of `STEP` or to all.

    How many they are depends on the row alone, and so do the shapes of the products that its pairs go through, hence its bits. A
    row without company has its positions twice: several threads would cut a lone product into pieces, and add in another order.
    """
    length, threads = queried.shape[1], torch.get_num_threads()
    sizes = (queried.sum(1) + STEP - 1).div(STEP, rounding_mode="floor").mul(STEP).clamp_max(length)
    first = queried.argsort(dim=1, descending=True, stable=True)
    least = min(2, threads) if queried.device.type == "cpu" else 1
    counts = Counter(sizes.tolist())  # all that the host needs to know: the only time that it waits for the device
    for size, alike in zip(sorted(counts), sizes.argsort(stable=True).split([counts[size] for size in sorted(counts)]), strict=True):
        where = first[:, :size] if size < length else torch.arange(length, device=queried.device).expand_as(first)
        for rows in alike.split(max(least, threads * (CACHED_PAIRS // size**2))) if size else ():
            yield rows, where.index_select(0, rows.expand(max(least, len(rows))))


def crossed(where: Int[Tensor, "R N"], length: int) -> Int[Tensor, "R N*N"]:
    """The places of all pairs of positions in a matrix over all positions."""
    return (where[:, :, None] * length + where[:, None]).flatten(1)


def spread(block: Float[Tensor, "R N N"], where: Int[Tensor, "R N"], length: int) -> Float[Tensor, "R L L"]:
    """Matrices over some positions of each row as matrices over all, with zeros elsewhere."""
    if where.shape[1] == length:
        return block
    return block.new_zeros(len(block), length**2).scatter(1, crossed(where, length), block.flatten(1)).view(-1, length, length)


def check_prediction(head: nn.Module, prediction: Prediction, width: int, symbols: int, length: int) -> None:
    """Refuse what comes from another kind of backbone."""
    who, hidden, log_probs = type(head).__name__, prediction.hidden, prediction.log_probs
    if hidden.shape[2] != width or (symbols and log_probs.shape[2] != symbols) or (length and hidden.shape[1] != length):
        raise PairmiError(
            f"{who}: expected {length or 'any number of'} positions, {symbols or 'any number of'} symbols and hidden states of width "
            f"{width}, got {hidden.shape[1]}, {log_probs.shape[2]} and {hidden.shape[2]}; load the head together with its own backbone"
        )
