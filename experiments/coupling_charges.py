"""Calibrate charges to what learnt tables leave, write them into the tables' file, and check budgets on other draws.

    python experiments/coupling_charges.py [--tables FILE] [--boards 24] [--check 48] [--no-write]

For the 9x9 Sudoku model: `mi-bound:charge=calibrated,draw=coupled,budget=B` then loses about B nats a pass. Every measurement is kept in
--records under the fingerprints of tables and head, so that an interrupted run goes on, and new tables are done again.
"""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pairmi.backbones.checkpoint import fingerprint, load_tensors, save_tensors
from pairmi.bench.ledger import Ledger
from pairmi.loading import load
from pairmi.pricing.calibrate import calibrate, reliability
from pairmi.selectors.charge import Calibration
from pairmi.spec import estimate
from pairmi.tuning import coupled_rule

TABLES = Path("src/pairmi/weights/sudoku-tables.safetensors")
BUDGETS = (0.01, 0.03, 0.1, 0.3)  # nats a pass, that charges are fitted at
CHECKED = (0.02, 0.06, 0.2)  # and that they are checked at
FIT_SEED, CHECK_SEED = 3_000_003, 4_000_003  # other draws than those of docs/coupling.md


def main() -> None:
    """Fit, write, check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, default=TABLES)
    parser.add_argument("--boards", type=int, default=24, help="at each budget, four times")
    parser.add_argument("--check", type=int, default=48, help="boards at each budget")
    parser.add_argument("--no-write", action="store_true", help="leave the tables as they are")
    parser.add_argument("--records", type=Path, default=Path("experiments/records/coupling.jsonl"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    ledger, model = Ledger(options.records), load("sudoku", head="sudoku", tables=str(options.tables), precision="bfloat16")
    assert isinstance(model.tables, nn.Module) and isinstance(model.head, nn.Module)  # noqa: PT018
    chosen, mi, empty = coupled_rule(model.tables), estimate("head", model), torch.full((81,), model.vocab.size)
    key = {"tables": fingerprint(model.tables.state_dict()), "head": fingerprint(model.head.state_dict())}

    def fitted() -> Mapping[str, Any]:
        return {"calibration": calibrate(model, [empty] * options.boards, mi, chosen, BUDGETS, seed=FIT_SEED).about()}

    found = ledger.measured(key | {"what": "charges", "boards": options.boards, "budgets": BUDGETS}, fitted)
    charge = Calibration.from_about(found["calibration"])
    print(f"slope {charge.slope:.2f}, offset {charge.offset:.2f}", flush=True)
    if not options.no_write:
        tensors, about = load_tensors(options.tables)
        save_tensors(options.tables, tensors, about | {"calibration": charge.about()})
    charged = replace(model, residuals={"coupled": charge})
    for budget in CHECKED:

        def measured() -> Mapping[str, Any]:
            (one,) = reliability(charged, [empty] * options.check, mi, chosen, charge, (budget,), seed=CHECK_SEED)  # noqa: B023
            plain = {"predicted": one.predicted, "measured": one.measured, "error": one.error, "nats": one.price.nats}
            return plain | {"passes": one.price.passes, "each": one.price.each.tolist()}

        settings = key | {"what": "budgets", "budget": budget, "boards": options.check, "calibration": charge.about()}
        one = ledger.measured(settings, measured)
        lost = f"charged {one['predicted']:.3g}, lost {one['measured']:.3g} +- {one['error']:.2g} nats a pass"
        print(f"asked {budget:g}: {lost}, {one['nats']:.3g} nats in {one['passes']:.1f} passes", flush=True)


if __name__ == "__main__":
    main()
