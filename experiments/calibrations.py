"""Calibrate the heads in the package, tune a rule for each, write both into the head's file, and check budgets on other draws.

    python experiments/calibrations.py [sudoku protein antiberty albert-zh] [--check | --no-check] [--no-write] [--records experiments/records]

Every measurement is kept in --records under the head's fingerprint, so that an interrupted run goes on, and a new head is done again.
A calibration that the head's file holds is taken from there; where the plan has levels, its budgets are made true again on more sequences.
albert-zh has no head: it is calibrated with sampled probes on half-masked sentences, and nothing is written.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from pairmi import tuning
from pairmi.backbones.checkpoint import fingerprint, load_tensors
from pairmi.bench.ledger import Ledger
from pairmi.loading import equip, head_file, load
from pairmi.model import Model
from pairmi.pricing.calibrate import calibrate, fit_budget, reliability
from pairmi.selectors.charge import Calibration
from pairmi.spec import estimate
from pairmi.types import PairwiseMI
from text import half_masked, sentences

BUDGETS = (0.01, 0.03, 0.1, 0.3)  # nats a pass, that calibrations are fitted at
CHECKED = (0.02, 0.06, 0.2)  # and that they are checked at
CHARGED = "mi-bound:charge=calibrated,"
FAMILY = f"{CHARGED}budget=0.01|0.02|0.04|0.07|0.12|0.2|0.35|0.6"
CALIBRATION_SEED, CHECK_SEED, LEVEL_SEED, TUNE_SEED = 1_000_003, 2_000_003, 3_000_003, 4_000_003
Level = tuple[float, int, int]  # what charges may add up to, the sequences that tell what is then lost, and which draws these are
BOARDS: tuple[Level, ...] = ((0.014, 400, 0), (0.025, 400, 0), (0.033, 600, 2), (0.063, 500, 1), (0.07, 400, 0), (0.24, 400, 0))
RECORDS = Path(__file__).parent / "records"


@dataclass(frozen=True)
class Plan:
    """How long the sequences are, and how many: to calibrate (at each budget, four times), to check (at each budget), to tune."""

    length: int | None  # of empty canvases; None = half-masked sentences
    calibrate: int
    check: int
    tune: int
    budgets: tuple[float, ...] = BUDGETS
    checked: tuple[float, ...] = CHECKED
    levels: tuple[Level, ...] = ()  # that budgets are made true by; none: as `calibrate` left them
    more: tuple[tuple[float, int], ...] = ()  # budgets that are checked on more, on other draws each, and how many; all are taken together
    family: str = FAMILY  # from safe to fast, that the rule is chosen of
    limit: float = 0.01  # nats a position, that the rule may lose


PLANS = {
    "sudoku": Plan(
        81,
        96,
        320,
        256,
        levels=BOARDS,
        more=((0.06, 64),) * 4,
        family=f"{CHARGED}budget=0.006|0.012",
    ),
    "protein": Plan(64, 24, 128, 96),
    "antiberty": Plan(118, 4, 12, 0, (0.05, 0.2, 0.6), (0.1, 0.3), ((0.05, 12, 0), (0.2, 12, 0), (0.6, 12, 0)), limit=0.03),
    "albert-zh": Plan(None, 16, 32, 0, (0.1, 0.3, 1.0), (0.2, 0.6)),
}
DRAWS = 2  # a probed position, where there is no head
TEXT = Path(__file__).parents[1] / "../shared/data/text/ud_chinese_gsdsimp_dev.txt.gz"


def guided(name: str) -> Model:
    """The model with its head, in bfloat16."""
    return load(name, head=None if PLANS[name].length is None else name, precision="bfloat16")


def estimated(model: Model) -> PairwiseMI:
    """By its head, or by draws."""
    return estimate("probe", model, draws=DRAWS) if model.head is None else estimate("head", model)


def canvases_for(model: Model, name: str, count: int, skipped: int = 0) -> list[Int[Tensor, " _"]]:
    """Empty canvases, or half-masked sentences, the first `skipped` left out."""
    length = PLANS[name].length
    if length is not None:
        return [torch.full((length,), model.vocab.size)] * count
    return half_masked(model, sentences(model, TEXT, 10, 30)[skipped : skipped + count])[0]


def key_of(name: str) -> dict[str, Any]:
    """What every measurement of a model with its head depends on."""
    length = PLANS[name].length
    head = f"{DRAWS} draws" if length is None else fingerprint(load_tensors(head_file(name))[0])
    return {"model": name, "head": head, "length": length, "precision": "bfloat16"}


def calibration_key(name: str) -> dict[str, Any]:
    """What the record of a calibration is found under."""
    return key_of(name) | {"what": "calibration", "sequences": PLANS[name].calibrate, "budgets": PLANS[name].budgets}


def level_keys(name: str, charge: Calibration, levels: Sequence[Level]) -> list[dict[str, Any]]:
    """What the records of what it loses are found under: a charge whose passes may spend what they are asked to."""
    about = key_of(name) | {"what": "level", "calibration": charge.about()}
    return [about | {"sequences": n, "allowed": allowed} | ({"part": part} if part else {}) for allowed, n, part in levels]


def first_charge(name: str, found: Mapping[str, Any] | None) -> Calibration | None:
    """The charge that a record holds, or else the head's file; without levels where the plan measures them."""
    about = load_tensors(head_file(name))[1].get("calibration") if found is None and PLANS[name].length is not None else None
    about = about if found is None else found["calibration"]
    charge = None if about is None else Calibration.from_about(about)
    return bare(charge) if charge is not None and PLANS[name].levels else charge


def bare(charge: Calibration) -> Calibration:
    """The map alone: what a pass is asked to spend is what its charges may add up to."""
    return replace(charge, offset=0.0, slope=1.0, levels=())


def charge_of(name: str, ledger: Ledger) -> Calibration | None:
    """The calibration, if all that it is made of is known."""
    charge = first_charge(name, ledger.find(calibration_key(name)))
    found = levels_of(name, ledger)
    if charge is None or len(found) < len(PLANS[name].levels):
        return None
    return fit_budget(charge, [(one["allowed"], one["measured"], one["error"]) for one in found]) if found else charge


def levels_of(name: str, ledger: Ledger) -> list[dict[str, Any]]:
    """What passes of the present calibration's map lose that may spend so much, by the records."""
    charge = first_charge(name, ledger.find(calibration_key(name)))
    keys = [] if charge is None else level_keys(name, charge, PLANS[name].levels)
    return [one | {"allowed": key["allowed"]} for key in keys if (one := ledger.find(key)) is not None]


def calibrated(name: str, ledger: Ledger) -> Model:
    """The model with a calibration: from the records and its file, or made now."""
    model, plan = guided(name), PLANS[name]
    charge = first_charge(name, ledger.find(calibration_key(name)))
    if charge is None:
        canvases = canvases_for(model, name, plan.calibrate)
        made = calibrate(model, canvases, estimated(model), tuning.calibrated_rule, plan.budgets, seed=CALIBRATION_SEED)
        charge = first_charge(name, ledger.add(calibration_key(name), {"calibration": made.about()}))
    assert charge is not None
    for key in level_keys(name, charge, plan.levels):
        canvases, seed = canvases_for(model, name, key["sequences"]), LEVEL_SEED + key.get("part", 0)
        ledger.measured(key, partial(lost, model, canvases, charge, key["allowed"], seed))
    return replace(model, calibration=charge_of(name, ledger))


def lost(model: Model, canvases: list[Int[Tensor, " _"]], charge: Calibration, budget: float, seed: int) -> dict[str, Any]:
    """What passes lose at a budget, for the records."""
    (one,) = reliability(model, canvases, estimated(model), tuning.calibrated_rule, charge, (budget,), seed=seed)
    plain = {"budget": one.budget, "predicted": one.predicted, "measured": one.measured, "error": one.error}
    return plain | {"nats": one.price.nats, "passes": one.price.passes, "each": [round(nats, 6) for nats in one.price.each.tolist()]}


def check_keys(name: str, charge: Calibration, budget: float) -> list[dict[str, Any]]:
    """What the records of the parts of a check are found under."""
    about = key_of(name) | {"what": "reliability", "calibration": charge.about(), "budget": budget}
    sizes = [PLANS[name].check, *(count for wanted, count in PLANS[name].more if wanted == budget)]
    return [about | {"sequences": count} | ({"part": part} if part else {}) for part, count in enumerate(sizes)]


def checked(name: str, model: Model, ledger: Ledger) -> list[dict[str, Any]]:
    """What passes lose at some budgets, on other draws."""
    assert isinstance(model.calibration, Calibration)
    charge = model.calibration
    for budget in PLANS[name].checked:
        for key in check_keys(name, charge, budget):
            canvases = canvases_for(model, name, key["sequences"], PLANS[name].calibrate)
            ledger.measured(key, partial(lost, model, canvases, charge, budget, CHECK_SEED + key.get("part", 0)))
    return checks_of(name, ledger)


def checks_of(name: str, ledger: Ledger) -> list[dict[str, Any]]:
    """What the records say of the present calibration's budgets, all parts together."""
    charge = charge_of(name, ledger)
    if charge is None:
        return []
    found = [[one for key in check_keys(name, charge, budget) if (one := ledger.find(key))] for budget in PLANS[name].checked]
    return sorted((together(some) for some in found if some), key=lambda one: float(one["budget"]))


def together(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Checks on different draws as one."""
    each = [nats for part in parts for nats in part["each"]]
    passes = [len(part["each"]) * part["passes"] for part in parts]  # of all sequences
    total = sum(passes)

    def mean(field: str) -> float:
        return float(sum(part[field] * own for part, own in zip(parts, passes, strict=True)) / total)

    error = sum((part["error"] * own) ** 2 for part, own in zip(parts, passes, strict=True)) ** 0.5 / total
    means = {"predicted": mean("predicted"), "measured": mean("measured"), "error": error, "passes": total / len(each)}
    told = {"parts": [(len(part["each"]), part["measured"]) for part in parts]}
    return {"budget": parts[0]["budget"], "sequences": len(each), "nats": sum(each) / len(each), "each": each} | means | told


def tuned(name: str, model: Model, ledger: Ledger) -> dict[str, Any]:
    """The rule that the head ships with: the fastest of a family that keeps the limit, on draws that nothing else was fitted on.

    One that the head's file holds for this calibration stays.
    """
    assert isinstance(model.calibration, Calibration)
    plan, about = PLANS[name], load_tensors(head_file(name))[1]
    if "rule" in about and Calibration.from_about(about["calibration"]) == model.calibration:
        return dict(about["rule"])
    limit: dict[str, Any] = {"max_loss": plan.limit, "per": "position", "seed": TUNE_SEED}

    def found() -> Mapping[str, Any]:
        return tuning.tune(model, canvases_for(model, name, plan.tune), plan.family, **limit, sequences=plan.tune).about()

    key = key_of(name) | {"what": "tuned", "limit": plan.limit, "sequences": plan.tune, "calibration": model.calibration.about()}
    key |= {"family": plan.family, "seed": TUNE_SEED}
    return {field: value for field, value in ledger.measured(key, found).items() if field not in ("settings", "provenance")}


def main() -> None:
    """Do it for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default="all", choices=[*PLANS, "all"], metavar="MODEL")
    parser.add_argument("--no-write", action="store_true", help="leave the heads as they are")
    parser.add_argument("--check", action="store_true", help="calibrate and check budgets, tune and write nothing")
    parser.add_argument("--no-check", action="store_true", help="tune and write, check no budget")
    parser.add_argument("--records", type=Path, default=RECORDS, help="folder")
    options = parser.parse_args()
    torch.set_num_threads(1)
    ledger = Ledger(options.records / "price-calibrations.jsonl")
    for name in PLANS if options.models == "all" else options.models:
        model = calibrated(name, ledger)
        assert isinstance(model.calibration, Calibration)
        allowed = ", ".join(f"{budget:g}: {model.calibration.allowed(budget):.3g}" for budget in PLANS[name].checked)
        print(f"{name}: what charges may add up to at a budget: {allowed}", flush=True)
        if model.head is not None and not options.check:
            rule = tuned(name, model, ledger)
            print(rule["words"], flush=True)
            if not options.no_write:
                equip(head_file(name), head_file(name), model.calibration, rule)
        for one in [] if options.no_check else checked(name, model, ledger):
            asked = f"asked {one['budget']:g}, charged {one['predicted']:.3g}, lost {one['measured']:.3g} +- {one['error']:.2g} nats a pass"
            print(f"{name}: {asked} in {one['passes']:.1f} passes", flush=True)


if __name__ == "__main__":
    main()
