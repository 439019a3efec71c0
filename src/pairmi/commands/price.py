"""`pairmi price`."""

import argparse
from collections.abc import Sequence
from typing import Any

from pairmi import tuning
from pairmi.bench import report
from pairmi.bench.price_plots import draw_frontier
from pairmi.commands.canvases import checked_canvases
from pairmi.commands.document import dumped
from pairmi.loading import load
from pairmi.model import Model
from pairmi.pricing.price import Price
from pairmi.spec import rule

COLUMNS = ("rule", "nats", "interval", "against", "passes", "rows", "probe_rows", "acceptance", "tv_bound")
CALIBRATION_SEED = 1_000_003  # added to --seed: other draws than those that are priced


def prepared(options: argparse.Namespace, specs: Sequence[str]) -> tuple[Model, list[Any]]:
    """The model, calibrated if asked for, and the canvases; refuses rules that cannot be before anything starts."""
    model = load(options.backbone, head=options.head, attention=any("mi=attention" in spec for spec in specs))
    canvases: list[Any] = [canvas.tokens for canvas in checked_canvases(model, options)]
    if options.calibrate:
        seed = options.seed + CALIBRATION_SEED
        model = tuning.calibrate(model, canvases, seed=seed, sequences=options.calibrate, batch_size=options.batch)
    for spec in specs:
        rule(spec, model)
    return model, canvases


def run(options: argparse.Namespace) -> None:
    """`pairmi price`: a table, or JSON, and the frontier."""
    specs = list(dict.fromkeys(options.rules))
    model, canvases = prepared(options, specs)
    how = {"seed": options.seed, "sequences": options.sequences, "temperature": options.temperature, "batch_size": options.batch}
    found = tuning.price(model, canvases, specs, **how)
    if options.figure:
        draw_frontier([one.about() for one in found], options.figure)
    if options.json:
        charge = {} if model.calibration is None else {"calibration": model.calibration.about()}
        print(dumped({"backbone": model.name, **charge, "results": [_record(one, found[0]) for one in found]}))
    else:
        print(described(found))


def _record(one: Price, first: Price) -> dict[str, Any]:
    """One result as JSON, with its paired difference to the first rule."""
    gap, *interval = one.against(first)
    return one.about() | {"against": None if one is first else {"rule": first.rule, "nats": gap, "interval": interval}}


def described(found: Sequence[Price]) -> str:
    """For people: nats a sequence with their 95 % interval, and the paired difference to the first rule."""
    rows = []
    for one in found:
        gap = one.against(found[0])
        apart = "" if one is found[0] else f"{gap[0]:+.3g} [{gap[1]:+.3g}, {gap[2]:+.3g}]"
        rows.append(one.about() | {"interval": f"[{one.interval[0]:.3g}, {one.interval[1]:.3g}]", "against": apart})
    note = f"nats lost a sequence against sequential decoding in the rule's own order; {len(found[0].each)} sequences, seed {found[0].seed}"
    return f"{report.table(rows, COLUMNS)}\n\n{note}; against: paired difference to the first rule; intervals: 95 %"
