"""Exact pairwise mutual information from the model itself: fix X_i = v, look how every other position moves."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pairmi.counting import metered
from pairmi.info import entropy_of, pairs
from pairmi.types import Backbone, Meter, PairMatrix, PairmiError, PerPosition, PerRow, Prediction, RowStreams

Form = Literal["joint", "kl", "tv", "entropy"]


@dataclass(frozen=True)
class Probed:
    """What probing found, in nats. Directed matrices are indexed [probed i, observed j]."""

    matrix: PairMatrix  # symmetrised
    bound: PairMatrix  # entrywise: |matrix - what the full probe would have given| is at most this
    directed: PairMatrix  # before symmetrising; |directed - its transpose| is the model's inconsistency
    inconsistency: PairMatrix  # KL(m_j || p_j): how far the mixture of the conditionals is from the marginal
    entropies: PerPosition
    conditional_entropies: PairMatrix  # H(X_j | X_i, C), over the probed symbols
    rows: PerRow  # probing rows spent on each canvas, the base pass not counted


@dataclass(frozen=True)
class Probe:
    """The probe with its settings; as a `PairwiseMI` it gives the matrix alone. At large vocabularies: `SampledProbe`.

    Three forms of mutual information, equal only if the model's beliefs are consistent (p_j = sum_v p_i(v) q_{j|i=v}):
      joint    sum_v p_i(v) KL(q_{j|v} || m_j), m_j = sum_v p_i(v) q_{j|v}     a true mutual information
      kl       sum_v p_i(v) KL(q_{j|v} || p_j) = joint + KL(m_j || p_j)        the error of drawing j without seeing i
      entropy  H(p_j) - sum_v p_i(v) H(q_{j|v})                                the paper's step 4; can be negative
    and `tv`, sum_v p_i(v) TV(q_{j|v}, p_j), a probability.

    Certified pruning: of each position the least likely symbols are skipped, as many as can change a directed entry by at
    most `floor` nats. What skipping the symbols S (of total probability e) can change:
      joint    h(e) + e H(p_i | S) = H(p_i) - (1 - e) H(p_i | not S)      by the chain rule over the coin "X_i in S"
      kl       e max_w -log p_j(w)
      tv       e
      entropy  e log V
    A position whose whole entropy is below the floor is so not probed at all (joint). floor = 0 is the full probe.
    """

    form: Form = "joint"
    floor: float = 0.01
    batch_rows: int = 256

    def __post_init__(self) -> None:
        if self.form not in get_args(Form):
            raise PairmiError(f"Probe(form={self.form!r}): form must be {', '.join(get_args(Form))}")
        if not self.floor >= 0 or self.batch_rows < 1:
            raise PairmiError(f"Probe(floor={self.floor}, batch_rows={self.batch_rows}): floor must be >= 0 nats and batch_rows >= 1")

    def __call__(self, prediction: Prediction, backbone: Meter, rng: RowStreams) -> PairMatrix:
        """The symmetrised matrix, not below 0."""
        return self.measure(prediction, backbone).matrix.clamp_min(0)

    def measure(self, prediction: Prediction, backbone: Backbone, sources: Bool[Tensor, "B L"] | None = None) -> Probed:
        """Probe every masked position of every canvas, or only `sources`; the bound tells what is then not known of a pair."""
        masked, log_probs = prediction.masked, prediction.log_probs.double()
        probed, slack = self._plan(prediction, sources)
        kept, mean_entropy, from_base, mixture_entropy, inconsistency = self._moments(prediction, metered(backbone), probed)
        skipped = (log_probs.exp() * ~probed).sum(-1, keepdim=True)  # exactly 0 in the full probe, also in float32
        base = entropy_of(prediction)
        if self.form == "joint":
            low = (kept * mixture_entropy - mean_entropy).clamp_min(0)
            guess, high = low, low + slack[:, :, None]
        elif self.form in ("kl", "tv"):
            worst = -log_probs.amin(-1)[:, None, :] if self.form == "kl" else torch.ones_like(skipped)
            guess, low = from_base, from_base
            high = low + torch.where(skipped > 0, skipped * worst, 0)
        else:
            high = base[:, None, :] - mean_entropy
            guess, low = high - skipped * base[:, None, :], high - skipped * math.log(log_probs.shape[-1])
        within = pairs(prediction.queried)
        low, guess, high = (torch.where(within, x, 0) for x in (low, guess, high))
        directed = torch.minimum(torch.maximum(guess.transpose(1, 2), low), high)  # what one side skipped, the other may have seen
        middle = 0.5 * (directed + directed.transpose(1, 2))
        bound = torch.where(low == high, 0, torch.maximum(high - directed, directed - low))  # both may be infinite
        conditional = torch.where(within, torch.where(kept > 0, mean_entropy / kept, base[:, None, :]), 0)
        return Probed(
            matrix=middle,
            bound=0.5 * (bound + bound.transpose(1, 2)),
            directed=directed,
            inconsistency=torch.where(within, inconsistency, 0),
            entropies=torch.where(masked, base, 0),
            conditional_entropies=conditional,
            rows=probed.sum((1, 2)),
        )

    def rows(self, prediction: Prediction) -> PerRow:
        """How many probing rows `measure` will spend on each canvas."""
        return self._plan(prediction)[0].sum((1, 2))

    def settled(self, prediction: Prediction) -> Bool[Tensor, "B L"]:
        """The masked positions that are not probed, because all of their symbols together can change an entry by no more than the floor."""
        return prediction.queried & ~self._plan(prediction)[0].any(-1)

    def _plan(self, prediction: Prediction, sources: Bool[Tensor, "B L"] | None = None) -> tuple[Tensor, PerPosition]:
        """Which symbols of which positions to probe [B, L, V], and what leaving the others out can change [B, L]."""
        log_probs = prediction.log_probs.double()
        ranked, symbols = log_probs.exp().sort(dim=-1)  # the least likely first
        tail = ranked.cumsum(-1)  # e, if all up to here are skipped
        if self.form == "joint":
            rest = (1 - tail).clamp_min(0)  # h(e) + e H(p | S) = -(1 - e) log(1 - e) - sum_S p log p
            slack = -torch.xlogy(rest, rest) - torch.xlogy(ranked, ranked).cumsum(-1)
        elif self.form == "kl":
            worst = -torch.where(prediction.masked, log_probs.amin(-1), 0).amin(-1)
            slack = torch.where(tail > 0, tail * worst[:, None, None], 0)
        elif self.form == "tv":
            slack = tail
        else:
            slack = tail * math.log(log_probs.shape[-1])
        skippable = (slack <= self.floor) | (ranked == 0)
        if sources is not None:
            skippable |= ~sources[:, :, None]
        skip_sorted = skippable.long().cumprod(-1).bool()
        left = torch.where(skip_sorted, slack, 0).amax(-1).nan_to_num(0)
        probed = torch.zeros_like(skip_sorted).scatter(-1, symbols, ~skip_sorted)
        return probed & prediction.queried[:, :, None], torch.where(prediction.queried, left, 0)

    def _moments(self, prediction: Prediction, backbone: Meter, probed: Bool[Tensor, "B L V"]) -> Float[Tensor, "5 B L L"]:
        """Of each source the probed mass, the sums over symbols of p_i(v) H(q) and of p_i(v) KL(q || p) or TV(q, p), and H(m), KL(m || p).

        Sources go in groups, whose rows are evaluated in batches of `batch_rows`, so memory is bounded by a few predictions of that size.
        What is to be probed is looked at once, at the start; after that the host waits for nothing.
        """
        log_probs, (rows, length, size) = prediction.log_probs.double(), prediction.log_probs.shape
        device, every = log_probs.device, torch.nonzero(probed).cpu()  # [rows to evaluate, (canvas, position, symbol)]
        found = torch.zeros(5, rows * length, length, dtype=torch.float64, device=device)
        kept, mean_entropy, from_base, mixture_entropy, inconsistency = found
        sources, owners, counts = every[:, :2].unique_consecutive(dim=0, return_inverse=True, return_counts=True)
        for first, last in self._groups(counts.tolist()):
            mine = (owners >= first) & (owners < last)
            (canvas, position, symbol), owner = every[mine].to(device).unbind(1), (owners[mine] - first).to(device)
            weight, place = log_probs[canvas, position, symbol].exp(), canvas * length + position
            mixture = torch.zeros(last - first, length, size, dtype=torch.float64, device=device)
            for part in torch.arange(len(owner), device=device).split(self.batch_rows):
                w, base = weight[part, None], log_probs[canvas[part]]
                tokens = prediction.tokens[canvas[part]].scatter(1, position[part, None], symbol[part, None])
                q = backbone(tokens, canvas[part]).log_probs.double().exp()
                negative = torch.xlogy(q, q).sum(-1)
                mixture.index_add_(0, owner[part], w[:, :, None] * q)
                mean_entropy.index_add_(0, place[part], -w * negative)
                if self.form == "tv":
                    moved = 0.5 * (q - base.exp()).abs().sum(-1)
                else:
                    moved = (negative - torch.where(q > 0, q * base, 0).sum(-1)).clamp_min(0)
                from_base.index_add_(0, place[part], w * moved)
            kept.index_add_(0, place, weight[:, None].expand(-1, length))
            row, source = sources[first:last].to(device).unbind(1)
            mixture /= kept[row * length + source, :, None]
            mixture_entropy[row * length + source] = -torch.xlogy(mixture, mixture).sum(-1)
            excess = torch.where(mixture > 0, mixture * (mixture.log() - log_probs[row]), 0).sum(-1)
            inconsistency[row * length + source] = excess.clamp_min(0)
        return found.view(5, rows, length, length)

    def _groups(self, rows: list[int]) -> Iterator[tuple[int, int]]:
        """Cut the sources, in order, into runs of at most `batch_rows` rows (one source alone may have more)."""
        start, filled = 0, 0
        for source, count in enumerate(rows):
            if filled and filled + count > self.batch_rows:
                yield start, source
                start, filled = source, 0
            filled += count
        if filled:
            yield start, len(rows)
