"""Calibrate the heads in the package, tune a rule for each, write both into the head's file, and check budgets on other draws.

    python experiments/calibrations.py [sudoku protein antiberty] [--no-write] [--page]

Every measurement is kept in --records under the head's fingerprint, so that an interrupted run goes on, and a new head is done again.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace
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
from pairmi.pricing.calibrate import calibrate, reliability
from pairmi.selectors.charge import Calibration
from pairmi.spec import estimate

BUDGETS = (0.01, 0.03, 0.1, 0.3)  # nats a pass, that calibrations are fitted at
CHECKED = (0.02, 0.06, 0.2)  # and that they are checked at
LIMIT = 0.01  # nats a position
FAMILY = "mi-bound:charge=calibrated,budget=0.01|0.02|0.04|0.07|0.12|0.2|0.35|0.6"
CALIBRATION_SEED, CHECK_SEED = 1_000_003, 2_000_003  # other draws than those that tune


@dataclass(frozen=True)
class Plan:
    """How long the sequences are, and how many: to calibrate (at each budget, four times), to check (at each budget), to tune."""

    length: int
    calibrate: int
    check: int
    tune: int


PLANS = {"sudoku": Plan(81, 24, 104, 64), "protein": Plan(64, 24, 128, 96), "antiberty": Plan(118, 6, 16, 16)}


def guided(name: str) -> Model:
    """The model with its head, in bfloat16."""
    return load(name, head=name, precision="bfloat16")


def empty(model: Model, name: str) -> Int[Tensor, " L"]:
    """A canvas of which nothing is known."""
    return torch.full((PLANS[name].length,), model.vocab.size)


def key_of(name: str) -> dict[str, Any]:
    """What every measurement of a model with its head depends on."""
    plan = PLANS[name]
    return {"model": name, "head": fingerprint(load_tensors(head_file(name))[0]), "length": plan.length, "precision": "bfloat16"}


def calibrated(name: str, ledger: Ledger) -> Model:
    """The model with a calibration: from the records, or made now."""
    model, count = guided(name), PLANS[name].calibrate

    def fitted() -> Mapping[str, Any]:
        canvases = [empty(model, name)] * count
        charge = calibrate(model, canvases, estimate("head", model), tuning.calibrated_rule, BUDGETS, seed=CALIBRATION_SEED)
        return {"calibration": charge.about()}

    found = ledger.measured(key_of(name) | {"what": "calibration", "sequences": count, "budgets": BUDGETS}, fitted)
    return replace(model, calibration=Calibration.from_about(found["calibration"]))


def checked(name: str, model: Model, ledger: Ledger) -> list[dict[str, Any]]:
    """What passes lose at some budgets, on other draws."""
    assert isinstance(model.calibration, Calibration)
    canvases, charge, records = [empty(model, name)] * PLANS[name].check, model.calibration, []
    for budget in CHECKED:

        def measured() -> Mapping[str, Any]:
            how = (canvases, estimate("head", model), tuning.calibrated_rule, charge, (budget,))  # noqa: B023
            (one,) = reliability(model, *how, seed=CHECK_SEED)
            plain = {"budget": one.budget, "predicted": one.predicted, "measured": one.measured, "error": one.error}
            return plain | {"nats": one.price.nats, "passes": one.price.passes, "each": one.price.each.tolist()}

        settings = key_of(name) | {"what": "reliability", "budget": budget, "sequences": len(canvases), "calibration": charge.about()}
        records.append(ledger.measured(settings, measured))
    return records


def tuned(name: str, model: Model, ledger: Ledger) -> dict[str, Any]:
    """The rule that the head ships with."""
    assert model.calibration is not None

    def found() -> Mapping[str, Any]:
        return tuning.tune(model, empty(model, name), FAMILY, max_loss=LIMIT, per="position", sequences=PLANS[name].tune).about()

    settings = key_of(name) | {"what": "tuned", "limit": LIMIT, "sequences": PLANS[name].tune, "calibration": model.calibration.about()}
    record = ledger.measured(settings, found)
    return {field: value for field, value in record.items() if field not in ("settings", "provenance")}


def main() -> None:
    """Do it for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default="all", choices=[*PLANS, "all"], metavar="MODEL")
    parser.add_argument("--no-write", action="store_true", help="leave the heads as they are")
    parser.add_argument("--records", type=Path, default=Path("runs/price"), help="folder")
    options = parser.parse_args()
    torch.set_num_threads(1)
    ledger = Ledger(options.records / "calibrations.jsonl")
    for name in PLANS if options.models == "all" else options.models:
        model = calibrated(name, ledger)
        print(f"{name}: slope {model.calibration.slope:.2f}, offset {model.calibration.offset:.2f}", flush=True)  # type: ignore[union-attr]
        rule = tuned(name, model, ledger)
        print(rule["words"], flush=True)
        if not options.no_write:
            equip(head_file(name), head_file(name), model.calibration, rule)
        for one in checked(name, model, ledger):
            asked = f"asked {one['budget']:g}, charged {one['predicted']:.3g}, lost {one['measured']:.3g} +- {one['error']:.2g} nats a pass"
            print(f"{name}: {asked} in {one['passes']:.1f} passes", flush=True)


if __name__ == "__main__":
    main()
