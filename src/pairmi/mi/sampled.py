"""Pairwise mutual information at any vocabulary: of each position a few symbols, the likely ones exactly, the others by draws."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from pairmi.counting import NUMBERS, Counting, metered
from pairmi.info import entropy_of, kl_and_mass, pairs, total_variation_and_mass
from pairmi.types import Backbone, Meter, PairMatrix, PairmiError, PerPosition, PerRow, Positions, Prediction, RowStreams

Drawn = Literal["kl", "tv"]
DIVERGENCES = {"kl": kl_and_mass, "tv": total_variation_and_mass}
MOST = 1024  # rows a position, at which an `error` that is not reached is given up


@dataclass(frozen=True)
class Sampled:
    """What was drawn, in nats (`tv`: a probability). Directed matrices are indexed [probed i, observed j]."""

    matrix: PairMatrix  # the mean of both directions; where one alone was drawn, that
    error: PairMatrix  # its standard error: 0 where every symbol was looked at, infinite where nothing tells it
    directed: PairMatrix
    directed_error: PairMatrix
    entropies: PerPosition
    drawn: PerPosition  # symbols drawn at each position; not those that were looked at exactly
    rows: PerRow  # rows spent on each canvas, the base pass not counted


@dataclass(frozen=True)
class Draws:
    """K symbols of each of N positions; the sum of weight times value is unbiased for sum_v p(v) value(v)."""

    symbols: Int[Tensor, "N K"]
    weights: Float[Tensor, "N K"]  # 0 = nothing to look at
    group: Int[Tensor, "N K"]  # the stratum of a draw; -1 = exact
    count: Float[Tensor, "N K"]  # draws in that stratum


def split(tail: Float[Tensor, "N M"], draws: int, each: int) -> Int[Tensor, " N"]:
    """How many of the likeliest symbols to take exactly, from the mass that is left behind the first 0, 1, ..., K of them.

    With m exact and T = K - m drawn the variance is at most tail_m^2 / T times that of one draw from the tail. Of all m <= K (1 - tail_m),
    for which no function whatever has more variance than with K plain draws, the one that makes this least; `each` draws are left at the
    least, unless nothing is left to draw from.
    """
    exact, total = torch.arange(tail.shape[1], device=tail.device), tail[:, :1]
    left = draws - exact
    allowed = (exact * total <= draws * (total - tail)) & ((left >= each) | (exact == 0))
    cost = torch.where(allowed, tail.square() / left.clamp_min(1), torch.inf)
    return torch.where(tail == 0, -1.0, cost).argmin(1)


def stratified(log_probs: Float[Tensor, "N V"], uniform: Float[Tensor, "N K"], each: int) -> Draws:
    """The likeliest symbols as `split` says; the others, in the order of the vocabulary, from strata of equal mass, `each` from each.

    If their number is no multiple of that, the last stratum is larger. Proportional allocation has never more variance than as many
    draws from the whole tail; two in a stratum tell its variance, one has less of it.
    """
    draws = uniform.shape[1]
    p = log_probs.double().exp()
    ranked, symbols = functional.pad(p, (0, max(0, draws + 1 - p.shape[1]))).topk(draws + 1, dim=1)
    tail = p.sum(1, keepdim=True) - functional.pad(ranked[:, :-1].cumsum(1), (1, 0))
    exact = split(torch.where(ranked > 0, tail, 0), draws, each)[:, None]
    slot = torch.arange(draws, device=p.device).expand(len(p), -1)
    taken, drawn = slot < exact, (draws - exact).clamp_min(1)
    p.scatter_add_(1, symbols[:, :-1].clamp_max(p.shape[1] - 1), torch.where(taken, -ranked[:, :-1], 0))
    below = p.cumsum_(1)
    mass, last = below[:, -1:], (drawn // each - 1).clamp_min(0)
    group = torch.minimum((slot - exact).clamp_min(0) // each, last)
    count = torch.where(group == last, drawn - each * last, each)
    level = mass * (each * group + count * uniform) / drawn
    place = torch.searchsorted(below, torch.minimum(level, mass.nextafter(torch.zeros_like(mass))), right=True).clamp_max(p.shape[1] - 1)
    weights = torch.where(taken, ranked[:, :-1], mass / drawn)
    return Draws(torch.where(taken, symbols[:, :-1], place), weights, torch.where(taken, -1, group), count.double())


def estimated(values: Float[Tensor, "N K L"], drawn: Draws) -> tuple[Float[Tensor, "N L"], Float[Tensor, "N L"]]:
    """The weighted sum, and an unbiased estimate of its variance: n / (n - 1) times the squares about the mean of each stratum."""
    weights, inside = drawn.weights[:, :, None], (drawn.group >= 0) & (drawn.weights > 0)
    total = torch.where(weights > 0, weights * values, 0).sum(1)
    member = ((drawn.group[:, None] == torch.arange(values.shape[1], device=values.device)[:, None]) & inside[:, None]).double()
    deviations = values - (member.mT @ (member / drawn.count[:, None] @ values))  # [N, stratum, K] picks the draws of a stratum
    factor = torch.where(inside, drawn.weights.square() * drawn.count / (drawn.count - 1).clamp_min(1), 0)[:, :, None]
    variance = torch.where(factor > 0, factor * deviations.square(), 0).sum(1).nan_to_num(torch.inf, torch.inf)
    return total, variance.masked_fill((inside & (drawn.count < 2)).any(1)[:, None], torch.inf)


@dataclass(frozen=True)
class SampledProbe:
    """The `kl` or `tv` form, unbiased, from `draws` rows a position; as a `PairwiseMI` it gives the matrix alone.

      kl  E_{v ~ p_i} KL(q_{j|v} || p_j)        tv  E_{v ~ p_i} TV(q_{j|v}, p_j)

    One row tells f_j(v) for every j, so K rows a position cost 1 + N K, whatever the vocabulary. The squared error is unbiased for the
    variance: from a few draws of something skewed it is rough, and two that are alike by chance say 0. With `error` positions are drawn
    again, each time as often as before, until the standard error of every entry is at most that, or `MOST` rows a position are spent; as
    the number of rows then depends on what was drawn, the mean over all rounds is unbiased only up to that.
    """

    form: Drawn = "kl"
    draws: int = 4
    error: float = 0.0  # 0 = as many draws as `draws` says
    batch_rows: int = 256

    def __post_init__(self) -> None:
        who = f"SampledProbe(form={self.form!r}, draws={self.draws}, error={self.error})"
        if self.form not in DIVERGENCES:
            raise PairmiError(f"{who}: only kl and tv are expectations, which draws estimate without bias; choose one, or leave draws out")
        if self.draws < 1 or self.batch_rows < 1:
            raise PairmiError(f"{who}: draws and batch_rows must be >= 1")
        if not self.error >= 0 or (self.error and self.draws < 2):
            raise PairmiError(f"{who}: error must be >= 0 nats, and needs draws >= 2: one alone does not tell its error")

    def __call__(self, prediction: Prediction, backbone: Meter, rng: RowStreams) -> PairMatrix:
        """The matrix of each row; where no error is asked for, with the least variance that so many rows can have."""
        return self.measure(prediction, backbone, rng, each=2 if self.error else 1).matrix

    def measure(
        self, prediction: Prediction, backbone: Backbone, rng: RowStreams, sources: Positions | None = None, each: int = 2
    ) -> Sampled:
        """Draw at every queried position, or only at `sources`; one draw in `each` stratum is the better estimate, without an error."""
        within, symbols = pairs(prediction.queried), prediction.log_probs.shape[-1]
        seen = prediction.queried if sources is None else prediction.queried & sources
        rounds = _Rounds(prediction, metered(backbone), rng, DIVERGENCES[self.form], self.batch_rows, each)
        value, variance, drawn, rows = rounds(seen, self.draws, 0)
        spent, number = self.draws, 0
        while self.error and spent < min(MOST, symbols):
            again = seen & (_cautious(value, variance, within).amax(2) > 2 * self.error**2)  # the mean of two such has at most error^2
            if not bool(again.any()):
                break
            number, whole = number + 1, 2 * spent >= symbols
            more, spread, count, evaluated = rounds(again, symbols if whole else spent, number)
            if not whole:
                more, spread, count = 0.5 * (value + more), 0.25 * (variance + spread), drawn + count
            value, variance = (torch.where(again[:, :, None], new, old) for new, old in ((more, value), (spread, variance)))
            drawn = torch.where(again, count, drawn)
            spent, rows = symbols if whole else 2 * spent, rows + evaluated
        value, variance = torch.where(within, value, 0), torch.where(within, variance, 0)
        sides = torch.where(within, seen[:, :, None].double() + seen[:, None], 0)
        error = ((variance + variance.mT).sqrt() / sides.clamp_min(1)).masked_fill(within & (sides == 0), torch.inf)
        entropies = torch.where(prediction.masked, entropy_of(prediction), 0)
        return Sampled((value + value.mT) / sides.clamp_min(1), error, value, variance.sqrt(), entropies, drawn, rows)


def interval(matrix: PairMatrix, error: PairMatrix, drawn: PerPosition) -> Float[Tensor, "2 B L L"]:
    """About 95 % for each entry: the ends of value * exp(+- t s), with s from the standard error as of a log-normal number.

    Draws of something skewed fall short more often than not, hence the logarithm; what was never drawn shows in no variance, hence at
    least the one that all pairs of the canvas have together; t is Student's with as many degrees of freedom as symbols were drawn at the
    two positions. What was looked at exactly tells nothing of the rest and does not count.
    """
    variance = _cautious(matrix, error.square(), error.isfinite() & (matrix > 0))
    spread = torch.log1p(variance / matrix.square()).sqrt().nan_to_num(0, torch.inf)
    return matrix * torch.exp(_student(drawn[:, :, None] + drawn[:, None]) * torch.stack([-spread, spread]))


def _student(freedom: PairMatrix) -> PairMatrix:
    """The 97.5 % quantile of Student's t, by Hill's expansion about the normal one (within 0.01 from 4 degrees on)."""
    z, n = 1.959963984540054, freedom.clamp_min(1)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / n + second / n**2 + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384 / n**3


def _cautious(value: PairMatrix, variance: PairMatrix, within: Bool[Tensor, "B L L"]) -> PairMatrix:
    """Not below the variance relative to the square that all pairs of the canvas have together: few draws are alike by chance."""
    value, variance = torch.where(within, value, 0), torch.where(within, variance, 0)
    together = variance.sum((1, 2), keepdim=True) / value.square().sum((1, 2), keepdim=True)
    return torch.maximum(variance, (together * value.square()).nan_to_num(0))


@dataclass(frozen=True)
class _Rounds:
    """Draws at some positions of a prediction; a call is a round with random numbers of its own."""

    prediction: Prediction
    backbone: Counting
    rng: RowStreams
    divergence: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
    batch_rows: int
    each: int

    def __call__(self, sources: Positions, draws: int, number: int) -> tuple[PairMatrix, PairMatrix, PerPosition, PerRow]:
        """So many draws at each source: the directed estimates, their variances, the symbols drawn there, and the rows of each canvas."""
        length, size = self.prediction.log_probs.shape[1:]
        draws = min(draws, size)
        uniform = self.rng.uniform(f"probe {number}", length, draws)
        value, variance = torch.zeros(2, *sources.shape, length, dtype=torch.float64, device=sources.device)
        rows, count = torch.zeros(len(sources), dtype=torch.long, device=sources.device), value.new_zeros(sources.shape)
        together = max(1, min(self.batch_rows // draws, NUMBERS // size))
        for canvas, position in zip(*(index.split(together) for index in torch.nonzero(sources).unbind(1)), strict=True):
            drawn = stratified(self.prediction.log_probs[canvas, position], uniform[canvas, position], self.each)
            used = drawn.weights > 0
            source, slot = torch.nonzero(used).unbind(1)
            values = uniform.new_zeros(*used.shape, length)
            values[source, slot] = self._moved(canvas[source], position[source], drawn.symbols[source, slot])
            value[canvas, position], variance[canvas, position] = estimated(values, drawn)
            rows.index_add_(0, canvas, used.sum(1))
            count[canvas, position] = (used & (drawn.group >= 0)).sum(1).double()
        return value, variance, count, rows

    def _moved(self, canvas: PerRow, position: PerRow, symbol: PerRow) -> Float[Tensor, "R L"]:
        """How far every queried position moves where one is fixed, a row each: in pieces that bound the memory."""
        tokens, log_probs, queried = self.prediction.tokens, self.prediction.log_probs, self.prediction.queried
        columns = torch.nonzero(queried.any(0))[:, 0]
        out = torch.zeros(len(canvas), tokens.shape[1], dtype=torch.float64, device=canvas.device)
        piece = max(1, min(self.batch_rows, NUMBERS // (log_probs.shape[1] * log_probs.shape[2])))
        for rows in torch.arange(len(canvas), device=canvas.device).split(piece) if len(canvas) else ():
            whose = canvas[rows]
            fixed = tokens[whose].scatter(1, position[rows, None], symbol[rows, None])
            moved = self.backbone(fixed, whose, check=False).log_probs
            base = log_probs.expand(len(rows), -1, -1) if len(log_probs) == 1 else log_probs[whose]
            if len(columns) < tokens.shape[1]:  # in a block it has all of them: no copies of large predictions
                moved, base = moved[:, columns], base[:, columns]
            found, mass = self.divergence(moved, base)
            self.backbone.watch(mass, moved.dtype)
            out[rows[:, None], columns] = found
        return out
