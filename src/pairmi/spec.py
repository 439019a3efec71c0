"""Strings become code here and nowhere else: specifications of rules and of the estimates that they use."""

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, cast

from torch import Tensor

from pairmi.loading import closest
from pairmi.mi.probe import Probe
from pairmi.mi.proxies import Attended, RandomMI, Shuffled, Structural
from pairmi.model import Model
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.selectors.in_blocks import InBlocks
from pairmi.selectors.one_at_a_time import OneAtATime
from pairmi.types import Charge, PairmiError, PairwiseMI, Selector

COMMITS = ("all", "one")  # how much of a rule's choice a pass fills
CHARGES = ("pairwise", "calibrated")  # by what mi-bound charges: its own formula, or a map that was fitted to measured prices
ESTIMATES = ("probe", "head", "shuffled", "random", "structural", "attention")
PROBING = {"form": "joint", "floor": 0.01}  # what `mi=probe` takes, and `mi=shuffled` where it shuffles what was probed


def estimate(name: str, model: Model, **probing: Any) -> PairwiseMI:
    """An estimate of mutual information by its name; `probing` is for those that probe."""
    if name not in ESTIMATES:
        raise PairmiError(f"mi={name}: unknown estimate; {closest(name, ESTIMATES)}")
    if probing and name != "probe" and not (name == "shuffled" and model.head is None):
        raise PairmiError(f"mi={name}: takes no {', '.join(probing)}; these are for mi=probe")
    graph = model.graph
    probe = Probe(**probing)
    if name == "structural" and graph is None:
        raise PairmiError(f"mi=structural: no structure is known for model {model.name!r}; choose another mi")
    if name == "head" and model.head is None:
        raise PairmiError(f"mi=head: model {model.name!r} has no head; load(..., head=FILE), or choose another mi")
    known: dict[str, Callable[[], PairwiseMI]] = {
        "probe": lambda: probe,
        "head": lambda: cast(PairwiseMI, model.head),
        "shuffled": lambda: Shuffled(model.head or probe),
        "random": RandomMI,
        "structural": lambda: Structural(cast(Tensor, graph)),
        "attention": Attended,
    }
    return known[name]()


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

    Rules that look at pairs take `mi` (the model's head, if it has one, else the probe), and `form` and `floor` for the probe. Every rule
    takes `commit`: all that it chose, or one position a pass, in its order; and `block`: it then sees so many unknown positions at a time.
    """
    name, options = parse(text)
    block = _value(text, "block", options.pop("block", "0"), int)
    if name not in CATALOGUE:
        raise PairmiError(f"rule {name!r} is unknown; {closest(name, CATALOGUE)}")
    kinds, commit = parameters(name), options.pop("commit", COMMITS[0])
    if commit not in COMMITS:
        raise PairmiError(f"rule {text!r}: commit must be one of {', '.join(COMMITS)}, got {commit!r}")
    values: dict[str, Any] = {}
    if "mi" in kinds:
        probing = {key: _value(text, key, options.pop(key), type(default)) for key, default in PROBING.items() if key in options}
        values["mi"] = estimate(options.pop("mi", "probe" if model.head is None or probing else "head"), model, **probing)
    if "charge" in kinds:
        values["charge"] = _charge(text, options.pop("charge", CHARGES[0]), model)
    for key, value in options.items():
        if key not in kinds:
            raise PairmiError(f"rule {text!r}: {name} has no parameter {key!r}; {closest(key, (*kinds, 'commit', 'block'))}")
        values[key] = _value(text, key, value, type(kinds[key]))
    made = cast(Selector, CATALOGUE[name](**values))
    made = OneAtATime(made) if commit == "one" else made
    return InBlocks(made, block) if "block=" in text else made


def _charge(text: str, value: str, model: Model) -> Charge | None:
    """The charge of a rule by its name; None = pairwise."""
    if value not in CHARGES:
        raise PairmiError(f"rule {text!r}: charge must be one of {', '.join(CHARGES)}, got {value!r}")
    if value == "calibrated" and model.calibration is None:
        raise PairmiError(f"rule {text!r}: model {model.name!r} has no calibration; make one with 'pairmi tune' or pairmi.calibrate")
    return model.calibration if value == "calibrated" else None


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
