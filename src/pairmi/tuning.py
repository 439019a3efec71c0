"""What a user calls to know what parallel decoding loses, and to choose how much: price, calibrate, tune."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, overload

import numpy as np
from jaxtyping import Int
from torch import Tensor

from pairmi import api
from pairmi.canvases import many
from pairmi.model import Model
from pairmi.pricing import calibrate as fitting
from pairmi.pricing.interval import bounded_upper, mean_interval, upper_bound
from pairmi.pricing.price import Price, measure
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.selectors.charge import Calibration
from pairmi.selectors.mi_bound import MIBound
from pairmi.selectors.wrappers import Coupled
from pairmi.spec import coupling_of, estimate, parameters, parse, way_of
from pairmi.types import Backbone, Coupling, PairmiError, PairwiseMI, Selector

Canvases = str | Sequence[Any] | Tensor
Given = list[Int[Tensor, " _"]]
Quality = Callable[[Int[Tensor, " L"]], float]  # of a filled canvas, 0..1
Per = Literal["sequence", "position"]
Draw = Literal["marginal", "coupled", "probed"]
LEAST = 32  # sequences that are drawn if fewer canvases are given
BUDGETS = (0.003, 0.01, 0.03, 0.1, 0.3)  # nats a pass, that a calibration is fitted at
FAMILY = "mi-bound:charge=calibrated,budget=0.001..0.5"  # from safe to fast
WIDER = 10.0  # times the budget, for pairwise charges where tables shift what is drawn
UNCALIBRATED = "mi-bound:penalty=4,entropy_weight=0.02,budget=0.001..0.5"


def sequences_of(model: Backbone, canvases: Canvases, sequences: int | None = None) -> Given:
    """The canvases, checked, and again from the first until there are as many as asked for; None = each once, at least 32 in all."""
    if sequences is not None and sequences < 1:
        raise PairmiError(f"sequences={sequences}: must be at least 1")
    checked, _ = many(model, canvases)
    return [checked[n % len(checked)] for n in range(max(len(checked), LEAST) if sequences is None else sequences)]


@overload
def price(
    model: Backbone, canvases: Canvases, rules: str | Selector, *, seed: int = ..., sequences: int | None = ..., temperature: float = ...,
    batch_size: int = ...,
) -> Price: ...  # fmt: skip
@overload
def price(
    model: Backbone, canvases: Canvases, rules: list[str], *, seed: int = ..., sequences: int | None = ..., temperature: float = ...,
    batch_size: int = ...,
) -> list[Price]: ...  # fmt: skip
def price(
    model: Backbone,
    canvases: Canvases,
    rules: str | Selector | list[str],
    *,
    seed: int = 0,
    sequences: int | None = None,
    temperature: float = 1.0,
    batch_size: int = 256,
) -> Price | list[Price]:
    """What a rule loses against one-by-one decoding in its own order, in nats a sequence; several rules on the same sequences.

    KL(one by one || at once), measured without ground truth on sequences that the model draws, one row a position. Canvases are drawn
    again until there are `sequences` (default: each once, at least 32 in all).
    """
    several = rules if isinstance(rules, list) else [rules]
    named = {one if isinstance(one, str) else type(one).__name__: api.resolve(one, model) for one in several}
    given = sequences_of(model, canvases, sequences)
    found = measure(model, given, named, seed=seed, temperature=temperature, batch_size=batch_size)
    return found if isinstance(rules, list) else found[0]


def calibrated_rule(mi: PairwiseMI, charge: Calibration | None, budget: float) -> Selector:
    """The rule that calibrations are made for."""
    return MIBound(mi, budget, charge=charge)


def coupled_rule(coupling: Coupling) -> fitting.Chosen:
    """The same where members are drawn by tables, which leave little of what pairwise charges count: these get larger budgets."""

    def chosen(mi: PairwiseMI, charge: Calibration | None, budget: float) -> Selector:
        return Coupled(calibrated_rule(mi, charge, WIDER * budget if charge is None else budget), coupling)

    return chosen


def calibrate(
    model: Backbone,
    canvases: Canvases,
    *,
    draw: Draw = "marginal",
    budgets: Sequence[float] = BUDGETS,
    seed: int = 0,
    sequences: int | None = None,
    batch_size: int = 256,
) -> Model:
    """The model with a calibration: `mi-bound:charge=calibrated` then charges in nats that were measured, by its head or by probes.

    With `draw` these are the nats that are lost where members are drawn by learnt ("coupled") or by exact tables ("probed").
    """
    own = api.as_model(model)
    mi = estimate("head" if own.head is not None else "probe", own)
    given, coupling = sequences_of(own, canvases, sequences), coupling_of(f"mi-bound:draw={draw}", draw, None, own)
    chosen = calibrated_rule if coupling is None else coupled_rule(coupling)
    charge = fitting.calibrate(own, given, mi, chosen, budgets, seed=seed, batch_size=batch_size)
    if coupling is None:
        return replace(own, calibration=charge)
    return replace(own, residuals={**own.residuals, way_of(coupling): charge})


def family_of(text: str, count: int = 12) -> list[str]:
    """The settings of "eb:budget=0.01..1", from left to right: `count` values, evenly apart on a log scale; or "eb:budget=0.1|0.2|0.5"."""
    name, options = parse(text)
    swept = [key for key, value in options.items() if ".." in value or "|" in value]
    if name not in CATALOGUE or len(swept) != 1:
        raise PairmiError(f"family {text!r}: expected a rule with one swept parameter, such as eb:budget=0.01..1 or top-k:k=1|2|4")
    key = swept[0]
    whole = isinstance(parameters(name).get(key), int)
    try:
        values = [float(part) for part in options[key].replace("..", "|").split("|")]
    except ValueError:
        raise PairmiError(f"family {text!r}: {key} must be numbers such as 0.01..1 or 0.1|0.2, got {options[key]!r}") from None
    if ".." in options[key]:
        if len(values) != 2 or min(values) <= 0:
            raise PairmiError(f"family {text!r}: {key}=FROM..TO needs two numbers above 0, got {options[key]!r}")
        values = np.geomspace(values[0], values[1], count).tolist()
    written = dict.fromkeys(f"{round(value)}" if whole else f"{value:.4g}" for value in values)
    rest = "".join(f"{other}={value}," for other, value in options.items() if other != key)
    return [f"{name}:{rest}{key}={value}" for value in written]


@dataclass(frozen=True)
class Evidence:
    """What was measured of one setting, and the upper confidence bound that decides."""

    rule: str
    loss: float  # in the unit of the limit
    bound: float  # one-sided, of the mean
    passes: float
    interval: tuple[float, float]  # 95 %, of the loss

    def passed(self, limit: float) -> bool:
        """Whether the setting keeps the limit."""
        return self.bound <= limit


def fixed_sequence(settings: Iterable[str], measured: Callable[[str], Evidence], limit: float) -> tuple[Evidence | None, list[Evidence]]:
    """Test settings in their order, stop at the first that fails; the last that passed, or None, and all that were tested.

    The first setting of the order whose true loss exceeds the limit must pass its own test before anything beyond it, or it, can be
    shipped: the chance of that is at most 1 - confidence, however many settings there are (Learn then Test, Angelopoulos et al. 2021).
    """
    if not limit >= 0:
        raise PairmiError(f"tune: the limit must be >= 0, got {limit}")
    tested: list[Evidence] = []
    for spec in settings:
        tested.append(measured(spec))
        if not tested[-1].passed(limit):
            break
    passed = [one for one in tested if one.passed(limit)]
    return (passed[-1] if passed else None), tested


@dataclass(frozen=True)
class Tuned:
    """The fastest setting of a family that keeps a limit, with its evidence; `sequential` if none does."""

    rule: str
    limit: float
    unit: str  # nats a sequence, nats a position, quality
    confidence: float
    loss: float
    interval: tuple[float, float]  # 95 %, of the loss
    passes: float
    sequential_passes: float
    sequences: int
    seed: int
    temperature: float
    tested: tuple[Evidence, ...]

    def __repr__(self) -> str:
        return f"Tuned({self})"

    @property
    def kept(self) -> bool:
        """Whether any setting of the family keeps the limit."""
        return any(one.passed(self.limit) for one in self.tested)

    def about(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self) | {"kept": self.kept, "words": str(self)}

    def __str__(self) -> str:
        sure = f"at {100 * self.confidence:g} % confidence ({self.sequences} sequences, seed {self.seed})"
        what = f"at most {self.limit:g} {self.unit} {sure}"
        if not self.kept:
            first = self.tested[0]
            return (
                f"no setting loses {what}: decode sequentially. The safest, {first.rule}, loses {first.loss:.3g}, and no more than "
                f"{first.bound:.3g} can be promised; raise the limit or give more sequences."
            )
        return (
            f"{self.rule} loses {what}: measured {self.loss:.3g} [{self.interval[0]:.3g}, {self.interval[1]:.3g}] in {self.passes:.1f} "
            f"passes, sequential takes {self.sequential_passes:.1f}."
        )


def tune(
    model: Backbone,
    canvases: Canvases,
    family: str | Iterable[str] | None = None,
    *,
    max_loss: float | None = None,
    max_quality_loss: float | None = None,
    quality: Quality | None = None,
    per: Per = "sequence",
    confidence: float = 0.95,
    seed: int = 0,
    sequences: int | None = None,
    temperature: float = 1.0,
    batch_size: int = 256,
) -> Tuned:
    """The fastest setting of a family, ordered from safe to fast, that loses at most a limit: true with probability >= confidence.

    The limit is a price (`max_loss`, nats a sequence or a position), or with a task that has right answers the loss of quality against
    sequential decoding (`max_quality_loss`, by paired differences). Settings are tested in order, up to the first that fails or the
    end of the family, which may be an iterator that ends when time is over: the promise holds.
    """
    if (max_loss is None) == (max_quality_loss is None):
        raise PairmiError("tune: expected a limit, either max_loss (nats) or max_quality_loss")
    if not 0.5 <= confidence < 1:
        raise PairmiError(f"tune: confidence={confidence}: must be at least 0.5 and below 1")
    if per not in ("sequence", "position"):
        raise PairmiError(f"tune: per={per!r}: must be sequence or position")
    own = api.as_model(model)
    if family is None:
        family = FAMILY if own.calibration is not None else UNCALIBRATED
    settings = family_of(family) if isinstance(family, str) else family
    given, how = sequences_of(own, canvases, sequences), {"seed": seed, "temperature": temperature, "batch_size": batch_size}
    if max_loss is not None:
        limit, unit, measured = max_loss, f"nats a {per}", _priced(own, given, how, per, confidence)
    else:
        limit, unit, measured = max_quality_loss or 0.0, "quality", _paired(own, given, how, quality, confidence)
    best, tested = fixed_sequence(settings, measured, limit)
    if not tested:
        raise PairmiError("tune: expected at least one setting in the family, got none")
    sequential = float(np.mean([int((canvas == own.vocab.size).sum()) for canvas in given]))
    best = best or Evidence("sequential", 0.0, 0.0, sequential, (0.0, 0.0))
    shown = (best.rule, limit, unit, confidence, best.loss, best.interval, best.passes)
    return Tuned(*shown, sequential, len(given), seed, temperature, tuple(tested))


def _priced(model: Model, given: Given, how: dict[str, Any], per: Per, confidence: float) -> Callable[[str], Evidence]:
    """Settings by their price, all on the same sequences."""

    def measured(spec: str) -> Evidence:
        (found,) = measure(model, given, {spec: api.resolve(spec, model)}, **how)
        values, unseen = found.each.numpy(), found.unseen
        if per == "position":
            values, unseen = found.per_position.numpy(), unseen * float((1 / found.unknown).mean())
        bound = upper_bound(values, confidence, unseen)
        return Evidence(spec, float(values.mean()), bound, found.passes, mean_interval(values, 0.95, unseen))

    return measured


def _paired(model: Model, given: Given, how: dict[str, Any], quality: Quality | None, confidence: float) -> Callable[[str], Evidence]:
    """Settings by quality: sequential less the setting, on the same streams; the bound holds whatever the values in [-1, 1]."""
    if quality is None and not model.task.decidable:
        raise PairmiError(f"tune: no right answer is known for model {model.name!r}; give quality=FUNCTION or max_loss (nats)")
    judge = quality or (lambda tokens: float(model.task.conflict(tokens) is None))

    def decoded(spec: str) -> tuple[np.ndarray, float]:
        out = api.decode(model, list(given), spec, **how)
        found = np.array([judge(one.tokens) for one in out], dtype=float)
        if not ((found >= 0) & (found <= 1)).all():
            raise PairmiError(f"tune: quality must be a number between 0 and 1, got {found.min():g} to {found.max():g}; scale it")
        return found, float(np.mean([one.passes for one in out]))

    reference, _ = decoded("sequential")

    def measured(spec: str) -> Evidence:
        own, passes = decoded(spec)
        lost = reference - own
        interval = -bounded_upper(-lost, -1.0, 1.0, 0.975), bounded_upper(lost, -1.0, 1.0, 0.975)
        return Evidence(spec, float(lost.mean()), bounded_upper(lost, -1.0, 1.0, confidence), passes, interval)

    return measured
