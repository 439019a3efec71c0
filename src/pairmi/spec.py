"""Strings become code here and nowhere else: specifications of rules and of the estimates that they use."""

from dataclasses import MISSING, fields
from typing import Any, cast

from pairmi.loading import closest
from pairmi.mi.deferred import Deferred
from pairmi.mi.probe import Form, Probe
from pairmi.mi.probed_tables import ProbedTables
from pairmi.mi.proxies import Attended, RandomMI, Shuffled, Structural
from pairmi.mi.sampled import DIVERGENCES, Drawn, SampledProbe
from pairmi.mi.table import TableHead
from pairmi.model import Model
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.selectors.wrappers import Coupled, InBlocks, OneAtATime
from pairmi.types import Charge, Coupling, PairmiError, PairwiseMI, Selector

COMMITS = ("all", "one")  # how much of a rule's choice a pass fills
DRAWS = ("marginal", "coupled", "probed")  # what members are drawn from: marginals, or those shifted by learnt or by exact tables
CHARGES = ("pairwise", "calibrated")  # by what mi-bound charges: its own formula, or a map that was fitted to measured prices
ESTIMATES = ("probe", "head", "shuffled", "random", "structural", "attention")
PROBING = {"form": str, "floor": float, "draws": int, "error": float}  # what `mi=probe` takes, and `mi=shuffled` of what was probed


def probing(
    form: str | None = None, floor: float | None = None, draws: int | None = None, error: float | None = None, batch_rows: int = 256
) -> Probe | SampledProbe:
    """Probing as it is asked for: exact up to `floor`, or with `draws` unbiased, until the standard `error` if one is given."""
    if draws is None and error is not None:
        raise PairmiError(f"probe: error={error:g} is reached by draws; say how many to begin with, such as draws=4")
    if draws is None:
        return Probe(cast(Form, form or "joint"), 0.01 if floor is None else floor, batch_rows)
    if floor is not None:
        raise PairmiError(f"probe: floor={floor:g} prunes exact probing; leave it out with draws={draws}")
    if form is not None and form not in DIVERGENCES:
        raise PairmiError(f"probe: form={form} is no expectation, so draws={draws} would be biased; choose form=kl or form=tv, or no draws")
    if draws < 1:
        raise PairmiError(f"probe: draws must be >= 1 rows a position, got {draws}")
    if error is not None and not (error > 0 and draws > 1):
        raise PairmiError(f"probe: error must be > 0 nats with draws >= 2 (one alone does not tell its error), got {error:g} with {draws}")
    return SampledProbe(cast(Drawn, form or "kl"), draws, error or 0.0, batch_rows)


def estimate(name: str, model: Model, **options: Any) -> PairwiseMI:
    """An estimate of mutual information by its name; the options are those of `probing`."""
    if name not in ESTIMATES:
        raise PairmiError(f"mi={name}: unknown estimate; {closest(name, ESTIMATES)}")
    if options and name != "probe" and not (name == "shuffled" and model.head is None):
        raise PairmiError(f"mi={name}: takes no {', '.join(options)}; these are for mi=probe")
    if name == "structural":
        if (graph := model.graph) is None:
            raise PairmiError(f"mi=structural: no structure is known for model {model.name!r}; choose another mi")
        return Structural(graph)
    if name == "head":
        if model.head is None:
            raise PairmiError(f"mi=head: model {model.name!r} has no head; load(..., head=FILE), or choose another mi")
        return model.head
    probe = probing(**options)
    return {"probe": probe, "shuffled": Shuffled(model.head or probe), "random": RandomMI(), "attention": Attended()}[name]


def parse(text: str) -> tuple[str, dict[str, str]]:
    """Split "name:key=value,key=value"."""
    name, _, tail = text.partition(":")
    options: dict[str, str] = {}
    for part in filter(None, tail.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not value:
            raise PairmiError(f"rule {text!r}: expected key=value after the colon, got {part!r}")
        if key in options:
            raise PairmiError(f"rule {text!r}: {key} is given twice")
        options[key] = value
    return name, options


def rule(text: str, model: Model) -> Selector:
    """A decoding rule from its specification, such as "mi-guided:mi=probe,budget=0.3"; the bare name has good defaults.

    Rules that look at pairs take `mi` (the model's head, if it has one, else the probe), and for the probe `form` and `floor`, or
    `draws` and `error`. Every rule takes `commit`: all that it chose, or one position a pass, in its order; and `draw`: each member from
    its marginal, or shifted by the members before it (coupled: by the model's learnt tables, or under mi=probe by exact ones; probed: by
    exact ones in any case). With `defer` a member of which learnt tables expect to lose more nats than that waits for a later pass, unless
    it can be drawn at the end of its set, with at most `late` nats expected of the whole set.
    Under charge=calibrated the budget is nats lost a pass by this way of drawing. With `block` it sees the first so many unknown
    positions, until they are filled.
    """
    name, options = parse(text)
    block = _value(text, "block", options.pop("block"), int) if "block" in options else None
    if name not in CATALOGUE:
        raise PairmiError(f"rule {name!r} is unknown; {closest(name, CATALOGUE)}")
    kinds, commit = parameters(name), _one_of(text, "commit", options.pop("commit", COMMITS[0]), COMMITS)
    coupling = coupling_of(text, _one_of(text, "draw", options.pop("draw", DRAWS[0]), DRAWS), options.get("mi"), model)
    if {"defer", "late"} & options.keys():
        nats = {key: _value(text, key, options.pop(key), float) for key in ("defer", "late") if key in options}
        coupling = _deferring(text, coupling, nats.get("defer"), nats.get("late", 0.0))
    values: dict[str, Any] = {}
    if "mi" in kinds:
        probes = {key: _value(text, key, options.pop(key), kind) for key, kind in PROBING.items() if key in options}
        values["mi"] = estimate(options.pop("mi", "probe" if model.head is None or probes else "head"), model, **probes)
    if "charge" in kinds:
        values["charge"] = _charge(text, options.pop("charge", CHARGES[0]), model, coupling)
    for key, value in options.items():
        if key not in kinds:
            raise PairmiError(
                f"rule {text!r}: {name} has no parameter {key!r}; {closest(key, (*kinds, 'commit', 'draw', 'defer', 'late', 'block'))}"
            )
        values[key] = _value(text, key, value, type(kinds[key]))
    made = cast(Selector, CATALOGUE[name](**values))
    made = made if coupling is None else Coupled(made, coupling)
    made = OneAtATime(made) if commit == "one" else made
    return made if block is None else InBlocks(made, block)


def _one_of(text: str, key: str, value: str, allowed: tuple[str, ...]) -> str:
    """The value, if it is one of those."""
    if value not in allowed:
        raise PairmiError(f"rule {text!r}: {key} must be one of {', '.join(allowed)}, got {value!r}")
    return value


def coupling_of(text: str, draw: str, mi: str | None, model: Model) -> Coupling | None:
    """How the members of a set are drawn; None = from their marginals."""
    if draw == "marginal":
        return None
    if draw == "probed" or mi == "probe" or (model.tables is None and model.head is None):
        return ProbedTables()
    if model.tables is None:
        raise PairmiError(
            f"rule {text!r}: the head of model {model.name!r} has no tables; take draw=probed (exact, a row for each member), "
            "or train tables with 'pairmi train tables' and load(..., tables=FILE)"
        )
    return model.tables


def _deferring(text: str, coupling: Coupling | None, limit: float | None, late: float) -> Coupling:
    """Learnt tables that leave to the end of a set, or to a later pass, whom they doubt."""
    if limit is None:
        raise PairmiError(f"rule {text!r}: late needs defer=NATS, which says who is in doubt")
    if not isinstance(coupling, TableHead):
        raise PairmiError(f"rule {text!r}: defer needs draw=coupled and learnt tables, which know what they lose")
    if coupling.doubt is None:
        how = "teach them with experiments/coupling_doubt.py, or leave it out"
        raise PairmiError(f"rule {text!r}: defer: these tables do not know what they lose; {how}")
    return Deferred(coupling, limit, late)


def _charge(text: str, value: str, model: Model, coupling: Coupling | None) -> Charge | None:
    """The charge of a rule by its name; None = pairwise. Where tables shift what members are drawn from, what is left counts."""
    if _one_of(text, "charge", value, CHARGES) == "pairwise":
        return None
    draw = way_of(coupling)
    charge = model.calibration if coupling is None else model.residuals.get(draw)
    if charge is None:
        how = "; make one with 'pairmi tune' or pairmi.calibrate"
        how = how if coupling is None else f" for draw={draw}; make one with pairmi.calibrate(..., draw={draw!r})"
        raise PairmiError(f"rule {text!r}: model {model.name!r} has no calibration{how}")
    return charge


def way_of(coupling: Coupling | None) -> str:
    """The way of drawing that a coupling is."""
    return "marginal" if coupling is None else "probed" if isinstance(coupling, ProbedTables) else "coupled"


def parameters(name: str) -> dict[str, Any]:
    """The parameters of a rule with their defaults."""
    found = {field.name: field.default for field in fields(CATALOGUE[name])}
    return {key: "probe" if default is MISSING else CHARGES[0] if default is None else default for key, default in found.items()}


def looks_at_pairs(text: str) -> bool:
    """Whether the rule of a specification reads mutual information."""
    return "mi" in parameters(parse(text)[0])


def _value(text: str, key: str, value: str, kind: type) -> Any:
    """A parameter of its kind."""
    try:
        return kind(value)
    except ValueError:
        raise PairmiError(f"rule {text!r}: {key} must be {'a whole number' if kind is int else 'a number'}, got {value!r}") from None
