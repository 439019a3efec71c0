"""Frontiers in nats over passes: what every rule loses on 9x9 Sudoku (generating) and on proteins. Results go to docs/price-frontiers.md.

    python experiments/price_frontiers.py [--only sudoku|protein] [--page]

Every rule is priced on the same empty canvases and streams, calibrated `mi-bound` with a map fitted on other draws. Each measurement is
kept in --records, so that an interrupted run goes on where it stopped; --page writes the page from what there is.
"""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from pairmi import tuning
from pairmi.backbones.identity import identify
from pairmi.bench import report
from pairmi.bench.ledger import Ledger
from pairmi.loading import load
from pairmi.model import Model
from pairmi.pricing.calibrate import reliability
from pairmi.selectors.charge import Calibration
from pairmi.spec import estimate

CALIBRATED = tuple(f"mi-bound:budget={b},charge=calibrated" for b in (0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3))
RULES = {
    "sudoku": (
        "eb:budget=0.1", "mi-bound:budget=0.06,entropy_weight=0.02,penalty=4", "mi-bound:budget=0.02,entropy_weight=0.02,penalty=4",
        "mi-bound:budget=0.3,entropy_weight=0.1,penalty=2", "threshold:threshold=0.9", "mi-guided:budget=0.6", "top-k:k=2",
        *CALIBRATED[1:6],
        "eb:budget=0.03", "eb:budget=0.3", "eb:budget=1", "threshold:threshold=0.98", "threshold:threshold=0.7", "factor:factor=0.05",
        "factor:factor=0.5", "klass:threshold=0.9,drift=0.1,history=1", "maskgit:steps=24,noise=0", "mi-guided:budget=0.1",
        "mi-bound:budget=0.01,penalty=8", "mi-bound:budget=0.05,penalty=8", "mi-bound:budget=0.1,penalty=4,entropy_weight=0.02",
        "mi-bound:budget=0.1", "independent-set:threshold=0.001", "independent-set:threshold=0.01",
        CALIBRATED[0], CALIBRATED[6],
    ),
    "protein": (
        "top-k:k=2", "top-k:k=4", "top-k:k=8", "eb:budget=2", "eb:budget=4", "eb:budget=8", "eb:budget=16", *CALIBRATED[2:],
        "mi-bound:budget=0.05", "mi-bound:budget=0.2", "mi-bound:budget=1", "mi-bound:budget=0.2,order=information",
        "threshold:threshold=0.15", "factor:factor=4", "klass:threshold=0.2,drift=0.05", "maskgit:steps=15,noise=0",
        "mi-guided:budget=8", "mi-guided:budget=16", "independent-set:threshold=0.005", "independent-set:threshold=0.02",
    ),
}  # fmt: skip
RELIABLE = (0.02, 0.08, 0.3)
LENGTHS = {"sudoku": 81, "protein": 64}


def calibrated(name: str, ledger: Ledger, options: argparse.Namespace) -> tuple[Model, dict[str, Any], torch.Tensor]:
    """The model with a calibration from other draws, what its measurements depend on, and an empty canvas."""
    model, empty = load(name), torch.full((LENGTHS[name],), 0)
    empty = torch.full_like(empty, model.vocab.size)
    key = {"model": name, "weights": identify(model), "sequences": options.sequences, "seed": options.seed}

    def fitted() -> Mapping[str, Any]:
        made = tuning.calibrate(model, empty, budgets=RELIABLE, seed=options.seed + 1_000_003, sequences=options.sequences)
        return {"calibration": made.calibration.about()} if made.calibration else {}

    found = ledger.measured(key | {"what": "calibration"}, fitted)
    return replace(model, calibration=Calibration.from_about(found["calibration"])), key, empty


def priced(name: str, ledger: Ledger, options: argparse.Namespace) -> None:
    model, key, empty = calibrated(name, ledger, options)
    for spec in tqdm(RULES[name], desc=name):
        how = {"seed": options.seed, "sequences": options.sequences}
        ledger.measured(key | {"what": "price", "rule": spec}, lambda: tuning.price(model, empty, spec, **how).about())  # noqa: B023
    for budget in RELIABLE:

        def checked() -> Mapping[str, Any]:
            canvases, mi = [empty] * options.sequences, estimate("head", model)
            (one,) = reliability(model, canvases, mi, tuning.calibrated_rule, model.calibration, (budget,), seed=options.seed + 7)  # noqa: B023
            return {"budget": one.budget, "predicted": one.predicted, "measured": one.measured, "passes": one.price.passes}

        ledger.measured(key | {"what": "reliability", "budget": budget}, checked)


def draw(name: str, records: list[dict[str, Any]], file: Path) -> None:
    """Nats over passes, a colour a rule; calibrated mi-bound in black."""
    plt = report.pyplot()
    figure, axis = plt.subplots(figsize=(8, 5.5), layout="constrained")
    for record in records:
        color, marker = report.STYLES.get(report.family(record["rule"]), ("tab:brown", "."))
        ours = "calibrated" in record["rule"]
        height = max(record["nats"], 1e-3)
        axis.plot(record["passes"], height, "*" if ours else marker, color="k" if ours else color, ms=9 if ours else 6, alpha=0.85)
        axis.annotate(record["rule"], (record["passes"], height), (4, 3), textcoords="offset points", fontsize=5)
    axis.set(xscale="log", yscale="log", xlabel="passes", ylabel="price (nats lost a sequence)", title=name)
    report.label_passes(axis)
    axis.grid(alpha=0.25)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)
    plt.close(figure)


def page(ledger: Ledger, out: Path) -> str:
    parts = []
    for name in RULES:
        mine = [record for record in ledger.found.values() if record["settings"]["model"] == name]
        prices = sorted((r for r in mine if r["settings"]["what"] == "price"), key=lambda r: float(r["passes"]))
        if not prices:
            continue
        draw(name, prices, out.parent / "figures" / f"price_{name}.png")
        rows = [r | {"95 %": f"[{r['interval'][0]:.3g}, {r['interval'][1]:.3g}]"} for r in prices]
        checks = [r for r in mine if r["settings"]["what"] == "reliability"]
        where = f"{prices[0]['sequences']} sequences of {LENGTHS[name]} unknown positions, seed {prices[0]['seed']}, commit {prices[0]['provenance']['commit'][:7]}"
        parts.append(
            f"## {name}\n\n{where}.\n\n![frontier](figures/price_{name}.png)\n\n"
            f"{report.table(rows, ('rule', 'passes', 'nats', '95 %', 'acceptance', 'rejections'))}\n\n"
            "Reliability of the calibrated charge on other draws than it was fitted on, nats a pass:\n\n"
            f"{report.table(checks, ('budget', 'predicted', 'measured', 'passes'))}\n"
        )
    return (
        "# Frontiers in nats\n\nPrinted by `python experiments/price_frontiers.py --page`. Price: nats lost a sequence against one by one in the rule's own order, from the empty canvas.\n\n"
        + "\n".join(parts)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=RULES)
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page")
    parser.add_argument("--sequences", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--records", type=Path, default=Path("runs/price"), help="folder")
    parser.add_argument("--out", type=Path, default=Path("docs/price-frontiers.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    ledger = Ledger(options.records / "frontiers.jsonl")
    for name in [] if options.page else [options.only] if options.only else RULES:
        priced(name, ledger, options)
    options.out.write_text(page(ledger, options.out))


if __name__ == "__main__":
    main()
