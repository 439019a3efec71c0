"""The stages of a fit that follow its head: calibrate, tune, check, price."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from pairmi import tuning
from pairmi.fitting.job import Fit
from pairmi.pricing.calibrate import NothingLost, calibrate, reliability
from pairmi.pricing.interval import unseen_loss
from pairmi.selectors.charge import Calibration
from pairmi.types import PairwiseMI, Selector

BUDGETS = (0.01, 0.03, 0.1, 0.3)  # nats a pass, that a calibration is fitted at
CHECKED = (0.02, 0.06, 0.2)  # and checked at, on other draws
ROUNDS = 4
RULES = (*(f"top-k:k={k}" for k in (2, 4, 8)), *(f"eb:budget={b}" for b in (0.1, 1, 4)), "threshold:threshold=0.9", "mi-guided:budget=1")
TESTED = 5  # settings that tuning tries before one fails, as a guess
FEWEST, MOST = 8, 512  # sequences of a measurement
BARELY, ROWS = 3, 100  # sequences of a calibration and about their positions, where it takes long: then at every other budget
TRIED = 4  # sequences that the first guess of a cost is measured on
T = TypeVar("T")
SEEDS = {"calibrate": 1_000_003, "check": 2_000_003}  # other draws than those that tune and price


def walk_seconds(fit: Fit) -> float:
    """What pricing a sequence has taken so far: the last measurements say most of the machine as it is now."""
    records = [record for record in fit.ledger.found.values() if "walks" in record][-3:]
    seconds, walks = (float(sum(record[name] for record in records)) for name in ("seconds", "walks"))
    return max(1e-6, seconds / max(1.0, walks))


def sequences_for(fit: Fit, seconds: float, settings: int, fewest: int = FEWEST) -> int:
    """How many sequences of each of some settings can be priced in this time."""
    return int(min(max(seconds / walk_seconds(fit) / settings, fewest), MOST))


def in_time(fit: Fit, stage: str, some: Sequence[T]) -> Iterator[T]:
    """The first of them to be measured, and the others as long as one that takes what the last one took ends before the stage should."""
    taken = 0.0
    for number, one in enumerate(some):
        if number and fit.until(stage) < taken:
            fit.say(f"{stage}: no time for {len(some) - number} of {len(some)} settings")
            return
        began = monotonic()
        yield one
        taken = monotonic() - began


def timed(fit: Fit, settings: Mapping[str, Any], walks: int, measure: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """A measurement with how long it took, kept."""

    def measured() -> Mapping[str, Any]:
        began = monotonic()
        return {"walks": walks, **measure(), "seconds": monotonic() - began}

    return fit.ledger.measured(settings, measured)


def calibrated(fit: Fit) -> Fit:
    """With a calibration, unless nothing is lost that one could learn from."""
    model = fit.model
    with fit.clock.stage("calibrate"):
        timed(fit, {"what": "trial"}, TRIED, lambda: fit.price("mi-bound:budget=0.1", TRIED))
        short = fit.decided("short", lambda: sequences_for(fit, fit.until("calibrate"), 2 * len(BUDGETS), 0) < FEWEST)
        barely = max(BARELY, int(ROWS * per_position(fit, 0.0, "position")[1]))
        budgets, fewest = (BUDGETS[1::2], barely) if short else (BUDGETS, FEWEST)
        count = fit.decided("calibrate", lambda: sequences_for(fit, fit.until("calibrate"), ROUNDS * len(budgets), fewest))
        given, asked = fit.given(count), list[float]()
        fit.say(f"calibrate: {len(budgets)} budgets, up to {ROUNDS} times {count} sequences")

        def chosen(mi: PairwiseMI, charge: Calibration | None, budget: float) -> Selector:
            asked.append(budget)
            return tuning.calibrated_rule(mi, charge, budget)

        def fitted() -> Mapping[str, Any]:
            how: dict[str, Any] = {"rounds": ROUNDS, "seconds": fit.until("calibrate"), "seed": fit.seed + SEEDS["calibrate"]}
            try:
                charge = calibrate(model, given, fit.mi, chosen, budgets, **how)
                return {"calibration": charge.about(), "walks": count * len(asked)}
            except NothingLost as error:
                return {"calibration": None, "why": str(error)}

        found = timed(fit, {"what": "calibration", "sequences": count}, count * len(budgets), fitted)
    if found["calibration"] is None:
        fit.say(f"not calibrated: {found['why']}")
        return fit
    return replace(fit, model=replace(model, calibration=Calibration.from_about(found["calibration"])))


def per_position(fit: Fit, limit: float, per: tuning.Per) -> tuple[float, float]:
    """A limit in nats a position, and the share of a sequence that a position is."""
    unknown = [int((one == fit.model.vocab.size).sum()) for one in fit.data.canvases]
    share = sum(1 / count for count in unknown) / len(unknown)
    return limit if per == "position" else limit * share, share


def needed_for(limit: float, share: float) -> int:
    """Sequences of which what none of them may have shown takes at most a quarter of the limit: with fewer nothing can be promised."""
    return next((n for n in range(FEWEST, MOST) if share * unseen_loss(n) <= limit / 4), MOST)


def spaced(family: Sequence[str], step: int, limit: float) -> list[str]:
    """Every so many of the settings; those whose budget a pass is far below the limit a position are then left out too.

    A pass fills a position at least, so that no more is lost a position than a pass.
    """
    safe = sum(float(spec.rpartition("=")[2]) <= limit / 2 for spec in family)
    return list(family[max(0, safe - 1) :: step] if step > 1 else family)


def tuned(fit: Fit, max_loss: float, per: tuning.Per) -> dict[str, Any]:
    """The fastest setting that keeps the limit, with its evidence."""
    lost, share = per_position(fit, max_loss, per)
    with fit.clock.stage("tune"):
        time, needed = fit.until("tune"), needed_for(lost, share)
        count = fit.decided("tune", lambda: max(sequences_for(fit, time, TESTED), min(needed, sequences_for(fit, time, 1))))
        step = fit.decided("step", lambda: 1 + min(2, int(TESTED * count * walk_seconds(fit) / max(1.0, fit.until("tune")))))
        family = spaced(fit.family, step, lost)  # where few can be tested, these are further apart
        fit.say(f"tune: up to {len(family)} settings on {count} sequences, at most {max_loss:g} nats a {per}")
        limit: dict[str, Any] = {"max_loss": max_loss, "per": per}

        def found() -> Mapping[str, Any]:
            settings = in_time(fit, "tune", family)
            result = tuning.tune(fit.model, fit.data.canvases, settings, **limit, seed=fit.seed, sequences=count)
            return result.about() | {"walks": count * len(result.tested)}

        record = timed(fit, {"what": "tuned", "sequences": count} | limit, 0, found)
    fit.say(record["words"])
    return {name: value for name, value in record.items() if name not in ("settings", "provenance", "walks", "seconds")}


def checked(fit: Fit) -> list[dict[str, Any]]:
    """What passes lose where the calibrated rule is asked for some budgets, on other draws."""
    charge, model, records = fit.model.calibration, fit.model, list[dict[str, Any]]()
    if not isinstance(charge, Calibration):
        return records
    with fit.clock.stage("check"):
        count = fit.decided("check", lambda: sequences_for(fit, fit.until("check"), len(CHECKED)))
        fit.say(f"check: {len(CHECKED)} budgets on {count} other sequences")
        for budget in in_time(fit, "check", CHECKED):

            def measured(budget: float = budget) -> Mapping[str, Any]:
                seed = fit.seed + SEEDS["check"]
                (one,) = reliability(model, fit.given(count), fit.mi, tuning.calibrated_rule, charge, (budget,), seed=seed)
                return {"budget": budget, "predicted": one.predicted, "measured": one.measured, "error": one.error}

            records.append(timed(fit, {"what": "reliability", "budget": budget, "sequences": count}, count, measured))
    return records


def priced(fit: Fit, rule: str) -> list[dict[str, Any]]:
    """The tuned rule, its neighbours in the family, and rules without MI, all on the same sequences: as many as time allows."""
    rules = dict.fromkeys(spec for spec in (rule, *fit.family[1::2], *RULES) if spec != "sequential")  # that loses nothing
    with fit.clock.stage("price"):
        count = fit.decided("price", lambda: sequences_for(fit, fit.until("price"), len(rules)))
        fit.say(f"price: {len(rules)} rules on {count} sequences")
        found = []
        for spec in in_time(fit, "price", list(rules)):
            settings = {"what": "price", "rule": spec, "sequences": count}
            found.append(timed(fit, settings, count, partial(fit.price, spec, count)))
            fit.say(f"  {spec}: {found[-1]['nats']:.3g} nats in {found[-1]['passes']:.1f} passes")
    return found
