"""The only cost meter: a backbone that counts how it is used."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace

import torch
from torch import Tensor

from pairmi.blocks import Window
from pairmi.info import mass_and_entropy
from pairmi.model import Around, checked_answer, innermost, predict_at, selective
from pairmi.types import Backbone, PairmiError, PerRow, Places, Prediction, Rows, Tokens

TOLERANCE = {torch.bfloat16: 0.1, torch.float16: 0.02}  # how far from 1 probabilities may sum to: that of half precision over many symbols
STRICT = 1e-3
NUMBERS = 1 << 22  # in the log-probabilities of one piece, at the most, where its rows need not be evaluated together


class Counting(Around):
    """Counts calls (sequential passes, NFE) and rows (sequences evaluated), and refuses what is not a prediction.

    Rules and estimators are handed this backbone and no other, so no method can look at the model for free. A call of
    more than `piece` rows is evaluated in pieces, to bound memory: still one sequential pass. What is wrong with the numbers of a
    prediction is said at once on a CPU; elsewhere, where looking means waiting, when the loop next asks (`wrong`, `complain`).
    """

    def __init__(self, backbone: Backbone, piece: int = 256) -> None:
        self.backbone, self.piece = backbone, piece
        self.calls = 0
        self.rows = 0
        self.spent: Tensor | None = None  # while a rule chooses: the rows that were evaluated for each canvas of its batch
        self.present: PerRow | None = None  # of a window: the numbers of the canvases that the batch still has; None = all
        self._masses: list[tuple[Tensor, float]] = []  # what probabilities summed to, of predictions that nobody has looked at yet

    def __call__(self, tokens: Tokens, owner: PerRow | None = None, check: bool = True) -> Prediction:
        """One pass, counted, with the entropies of all positions; rows that belong to no `owner` are shared out evenly.

        Who sweeps over all probabilities anyway and tells `watch` what they sum to need not have them checked before.
        """
        self._count(len(tokens))
        if self.spent is not None:
            mine = torch.arange(len(tokens), device=tokens.device) % len(self.spent) if owner is None else owner
            self.spent.index_add_(0, mine, torch.ones_like(mine))
        whose = self._whose(tokens, owner)
        parts = [slice(start, start + self.piece) for start in range(0, max(1, len(tokens)), self.piece)]
        found = (self._passed(tokens, whose, part) for part in parts)
        return joined([self.checked(one) if check else one for one in found])

    def pieces(
        self, tokens: Tokens, least: int, owner: PerRow | None = None, last: int = 0, places: Places | None = None
    ) -> Iterator[tuple[slice, Prediction]]:
        """One pass, counted, piece by piece: of at least `least` rows, and else of what bounded memory holds; nothing is checked yet.

        The `last` rows come together, as a prediction of their own; of the others with `places` these positions only.
        """
        self._count(len(tokens))
        whose, positions = self._whose(tokens, owner), 1 if places is not None and selective(self.backbone) else tokens.shape[1]
        rows, end = min(self.piece, max(1, least, NUMBERS // (positions * self.vocab.size))), len(tokens) - last
        for start in range(0, end, rows):
            where = slice(start, min(start + rows, end))
            yield where, self._passed(tokens, whose, where, places)
        if last:
            starts = range(end, len(tokens), self.piece)
            yield slice(end, len(tokens)), joined([self._passed(tokens, whose, slice(start, start + self.piece)) for start in starts])

    def keep(self, rows: Rows) -> None:
        """Some rows of the batch leave it."""
        self.present = rows if self.present is None else self.present[rows]

    @contextmanager
    def only(self, some: Rows) -> Iterator["Counting"]:
        """The meter for some of the rows of the batch: who asks numbers these."""
        before, spent = self.present, self.spent
        self.keep(some)
        mine = torch.zeros_like(some)
        self.spent = None if spent is None else mine
        yield self
        if spent is not None:
            spent.index_add_(0, some, mine)
        self.present, self.spent = before, spent

    def _count(self, rows: int) -> None:
        self.calls += 1
        self.rows += rows

    def _passed(self, every: Tokens, whose: PerRow | None, part: slice, places: Places | None = None) -> Prediction:
        tokens, backbone, some = every[part], self.backbone, None if places is None else places[part]
        with torch.no_grad():
            if whose is not None and isinstance(backbone, Window):
                prediction = backbone.within(tokens, whose[part], some)
            else:
                prediction = checked_answer(backbone, backbone(tokens)) if some is None else predict_at(backbone, tokens, some)
        tokens = tokens if some is None else tokens.gather(1, some)
        who, expected, log_probs = type(innermost(self.backbone)).__name__, (*tokens.shape, self.vocab.size), prediction.log_probs
        if tuple(log_probs.shape) != expected:
            raise PairmiError(f"{who}: expected log-probabilities of shape {list(expected)}, got {list(log_probs.shape)}")
        if log_probs.device != tokens.device:
            raise PairmiError(
                f"{who}: was given tokens on {tokens.device} and answers on {log_probs.device}; "
                f"say where it lives: pairmi.Model(backbone, device={str(log_probs.device)!r})"
            )
        return replace(prediction, tokens=tokens)  # whatever it says that it was asked

    def _whose(self, tokens: Tokens, owner: PerRow | None) -> PerRow | None:
        """The numbers of the canvases that rows stand in, of a window; without an owner they are the batch, row by row."""
        if not isinstance(self.backbone, Window):
            return None
        if owner is None:
            if self.present is not None and len(tokens) != len(self.present):
                raise PairmiError(
                    f"{len(tokens)} rows for a batch of {len(self.present)}: say in `owner` for which canvas each is evaluated"
                )
            owner = torch.arange(len(tokens), device=tokens.device)
        return owner if self.present is None else self.present[owner]

    def checked(self, prediction: Prediction) -> Prediction:
        """The same with its entropies; that it is normalised is seen in the same sweep."""
        mass, entropies = mass_and_entropy(prediction.log_probs)
        self.watch(mass, prediction.log_probs.dtype)
        return replace(prediction, entropies=entropies)

    def watch(self, mass: Tensor, dtype: torch.dtype) -> None:
        """Look at sums of probabilities: now, or later with everything else that is to be looked at."""
        self._masses.append((mass, TOLERANCE.get(dtype, STRICT)))
        if mass.device.type == "cpu":
            self.complain()

    def wrong(self) -> Tensor | None:
        """Whether any prediction since the last look was not normalised, on its device; None = there was none."""
        flags = [~((mass - 1).abs() < allowed).all() for mass, allowed in self._masses]  # also true for NaN and infinities
        return torch.stack(flags).any() if flags else None

    def complain(self) -> None:
        """Raise if a prediction was not normalised; what was looked at is forgotten."""
        masses, self._masses = self._masses, []
        for mass, allowed in masses:
            bad = ~((mass - 1).abs() < allowed)
            if bool(bad.any()):
                place = torch.nonzero(bad)[0].tolist()
                where = ", ".join(f"{kind} {n}" for kind, n in zip(("row", "position"), place, strict=False))
                raise PairmiError(
                    f"{type(innermost(self.backbone)).__name__}: log-probabilities of {where} sum to {float(mass[tuple(place)]):.4g}, "
                    "expected 1; the backbone must return finite, normalised log-probabilities (log_softmax), never logits; "
                    "where half precision overflows, load it with precision='float32'"
                )

    def settle(self, wrong: bool) -> None:
        """What there was to look at has been looked at, and this was found."""
        if wrong:
            self.complain()
        self._masses = []


def metered(backbone: Backbone) -> Counting:
    """The backbone itself if it counts already, else with a meter around it."""
    return backbone if isinstance(backbone, Counting) else Counting(backbone)


def joined(pieces: Sequence[Prediction]) -> Prediction:
    """Predictions of several batches as one."""
    if len(pieces) == 1:
        return pieces[0]

    def together(name: str) -> Tensor | None:
        values = [getattr(piece, name) for piece in pieces]
        return None if values[0] is None else torch.cat(values)

    return Prediction(*(together(field.name) for field in fields(Prediction)))  # type: ignore[arg-type]
