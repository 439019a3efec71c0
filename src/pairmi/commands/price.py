"""`pairmi price`."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pairmi import tuning
from pairmi.bench import report
from pairmi.commands.canvases import checked_canvases
from pairmi.loading import load
from pairmi.model import Model
from pairmi.pricing.price import Price
from pairmi.spec import rule
from pairmi.types import PairmiError

COLUMNS = ("rule", "nats", "interval", "against", "passes", "rows", "probe_rows", "acceptance", "tv_bound")
CALIBRATION_SEED = 1_000_003  # added to --seed: other draws than those that are priced


def prepared(options: argparse.Namespace, specs: Sequence[str]) -> tuple[Model, list[Any]]:
    """The model, calibrated if asked for, and the canvases; refuses rules that cannot be before anything starts."""
    if options.batch < 1:
        raise PairmiError(f"--batch {options.batch}: must be at least 1")
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
        draw_frontier(found, options.figure)
    if options.json:
        charge = {} if model.calibration is None else {"calibration": model.calibration.about()}
        print(json.dumps({"backbone": model.name, **charge, "results": [one.about() for one in found]}))
    else:
        print(described(found))


def described(found: Sequence[Price]) -> str:
    """For people: nats a sequence with their 95 % interval, and the paired difference to the first rule."""
    rows = []
    for one in found:
        gap = one.against(found[0])
        apart = "" if one is found[0] else f"{gap[0]:+.3g} [{gap[1]:+.3g}, {gap[2]:+.3g}]"
        rows.append(one.about() | {"interval": f"[{one.interval[0]:.3g}, {one.interval[1]:.3g}]", "against": apart})
    note = f"nats lost a sequence against one by one in the rule's own order; {len(found[0].each)} sequences, seed {found[0].seed}"
    return f"{report.table(rows, COLUMNS)}\n\n{note}; against: paired difference to the first rule; intervals: 95 %"


def draw_frontier(found: Sequence[Price], file: Path) -> None:
    """Nats over passes, both on log scales, every point labelled; what loses nothing stands on the lower edge."""
    plt = report.pyplot()
    figure, axis = plt.subplots(figsize=(8, 5.5), layout="constrained")
    floor = min((one.nats for one in found if one.nats > 1e-6), default=1e-3) / 3
    for one in found:
        color, marker = report.STYLES.get(report.family(one.rule), ("tab:brown", "."))
        height = max(one.nats, floor)
        axis.plot([one.passes], [height], marker, color=color, ms=6, alpha=0.85)
        low, high = (max(end, floor) for end in one.interval)
        axis.plot([one.passes] * 2, [low, high], "-", color=color, lw=0.8, alpha=0.4)
        axis.annotate(one.rule + (" (0)" if one.nats < floor else ""), (one.passes, height), (4, 3), textcoords="offset points", fontsize=6)
    axis.set(xscale="log", yscale="log", xlabel="passes", ylabel="price (nats lost a sequence)")
    report.label_passes(axis)
    axis.grid(alpha=0.25)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)
    plt.close(figure)
