"""`pairmi tune`."""

import argparse

from pairmi import tuning
from pairmi.bench import report
from pairmi.commands.document import dumped
from pairmi.commands.price import prepared

COLUMNS = ("rule", "loss", "bound", "passes", "kept")


def run(options: argparse.Namespace) -> None:
    """`pairmi tune`: every setting that was tested, then the verdict."""
    specs = [] if options.family is None or "charge=calibrated" in options.family else tuning.family_of(options.family)
    model, canvases = prepared(options, specs)
    names = ("max_loss", "max_quality_loss", "per", "confidence", "seed", "sequences", "temperature")
    how = {name: getattr(options, name) for name in names}
    tuned = tuning.tune(model, canvases, options.family, **how, batch_size=options.batch)
    if options.json:
        charge = {} if model.calibration is None else {"calibration": model.calibration.about()}
        print(dumped({"backbone": model.name, **charge, **tuned.about()}))
        return
    rows = [vars(one) | {"kept": "yes" if one.passed(tuned.limit) else "no"} for one in tuned.tested]
    print(f"{report.table(rows, COLUMNS)}\n\n{tuned}")
