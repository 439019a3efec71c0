"""Frontiers in nats over passes, every rule of the catalogue, and whether calibrated budgets are true. Results go to docs/price.md.

    python experiments/price_frontiers.py [generating solving protein antiberty] [--page]

Every rule is priced on the same canvases and streams, in bfloat16; calibrated `mi-bound` with the map that experiments/calibrations.py
fitted on other draws. Each measurement is kept in --records, so that an interrupted run goes on; --page writes what there is.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from calibrations import CHECKED, calibrated, empty, key_of
from pairmi import tuning
from pairmi.bench import report
from pairmi.bench.ledger import Ledger
from pairmi.bench.price_plots import draw_frontier, draw_reliability
from pairmi.model import Model
from pairmi.provenance import provenance
from pairmi.spec import looks_at_pairs
from pairmi.tasks.sudoku.puzzles import TEST, minimal_puzzles

MARK = "<!-- below: written by experiments/price_frontiers.py -->"
OURS = tuple(f"mi-bound:charge=calibrated,budget={b:g}" for b in (0.04, 0.15, 0.01, 0.08, 0.3))
SURE = ("eb:budget=0.1", "eb:budget=0.5", "eb:budget=1.5", "top-k:k=2", "threshold:threshold=0.9", "threshold:threshold=0.7")
UNSURE = ("top-k:k=4", "top-k:k=2", "eb:budget=8", "eb:budget=4", "top-k:k=8", "eb:budget=16", "threshold:threshold=0.15")
KNOBS = ("mi-bound:budget=0.06,entropy_weight=0.02,penalty=4", "mi-bound:budget=0.02")
PAIRWISE = ("mi-bound:budget=0.05", "mi-bound:budget=0.2")


@dataclass(frozen=True)
class Scene:
    """What is decoded, by which model, and the rules that are tried on it, the most telling first."""

    model: str
    sequences: int
    title: str
    rules: tuple[str, ...]


def telling(plain: tuple[str, ...], pairwise: tuple[str, ...], rest: tuple[str, ...]) -> tuple[str, ...]:
    """The most telling rules first."""
    return (*OURS[:3], *plain[:4], *pairwise[:2], *OURS[3:], *plain[4:], *pairwise[2:], *rest)


REST = (
    "mi-guided:budget=0.6",
    "demask:budget=0.1",
    "factor:factor=0.2",
    "klass:threshold=0.9,drift=0.1,history=1",
    "maskgit:steps=24,noise=0",
    "independent-set:threshold=0.005",
)
LATE = (
    "mi-guided:budget=8",
    "demask:budget=0.5",
    "factor:factor=4",
    "klass:threshold=0.2,drift=0.05",
    "maskgit:steps=12,noise=0",
    "independent-set:threshold=0.02",
)
BOARDS, CHAINS = telling(SURE, (*KNOBS, *PAIRWISE), REST), telling(UNSURE, (*PAIRWISE, *KNOBS), LATE)
SCENES = {
    "generating": Scene("sudoku", 48, "9x9 Sudoku from the empty board", BOARDS),
    "protein": Scene("protein", 64, "proteins of 64 residues", CHAINS),
    "solving": Scene("sudoku", 48, "minimal 9x9 puzzles with one solution", BOARDS),
    "antiberty": Scene("antiberty", 24, "antibody chains of 118 residues", CHAINS),
}


def canvases_of(name: str, model: Model) -> list[Any]:
    """What a scene decodes."""
    scene = SCENES[name]
    if name == "solving":
        return list(minimal_puzzles(scene.sequences, TEST + 18).canvases)
    return [empty(model, scene.model)] * scene.sequences


def priced(name: str, calibrations: Ledger, ledger: Ledger, seed: int, first: int | None) -> None:
    """Price the rules of a scene, or the first so many, that are not in the records."""
    scene, model = SCENES[name], calibrated(SCENES[name].model, calibrations)
    canvases = canvases_of(name, model)
    for spec in tqdm(scene.rules[:first], desc=name):
        charge = {"calibration": model.calibration.about()} if "calibrated" in spec and model.calibration else {}
        key = key_of(scene.model) | {"scene": name, "rule": spec, "sequences": len(canvases), "seed": seed} | charge
        ledger.measured(key, lambda: tuning.price(model, canvases, spec, seed=seed).about())  # noqa: B023


def passes_at(records: Sequence[Mapping[str, Any]], nats: float) -> float | None:
    """The fewest passes of some settings at a price of at most so many nats."""
    return min((float(record["passes"]) for record in records if record["nats"] <= nats), default=None)


def compared(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """At the price of each calibrated setting: its passes, and those of the best setting of others that cost no more."""
    ours = [record for record in records if "calibrated" in record["rule"]]
    plain = [record for record in records if not looks_at_pairs(record["rule"])]
    knobs = [record for record in records if record["rule"].startswith("mi-bound") and record not in ours]
    lines = []
    for one in ours:
        rivals = {"best without MI": passes_at(plain, one["nats"]), "best uncalibrated mi-bound": passes_at(knobs, one["nats"])}
        told = {name: "none so cheap" if found is None else found for name, found in rivals.items()}
        told |= {} if knobs else {"best uncalibrated mi-bound": "not measured"}
        ratio = rivals["best without MI"]
        lines.append(
            {"rule": one["rule"], "nats": one["nats"], "passes": one["passes"]}
            | told
            | {"ratio": "" if ratio is None else one["passes"] / ratio}
        )
    return lines


def section(name: str, ledger: Ledger, figures: Path) -> str:
    """The frontier of a scene: a picture, a table, and how calibrated settings compare."""
    records = sorted((r for r in ledger.found.values() if r["settings"]["scene"] == name), key=lambda r: float(r["passes"]))
    if not records:
        return ""
    scene = SCENES[name]
    draw_frontier(records, figures / f"price_{name}.png", scene.title)
    rows = [r | {"95 %": f"[{r['interval'][0]:.3g}, {r['interval'][1]:.3g}]"} for r in records]
    missing = [rule for rule in scene.rules if rule not in {record["rule"] for record in records}]
    absent = f" Not measured: {', '.join(missing)}." if missing else ""
    return (
        f"### {scene.title[0].upper() + scene.title[1:]}\n\n{records[0]['sequences']} sequences, `{scene.model}` with its head, bfloat16, seed {records[0]['seed']}, "
        f"commit {records[0]['provenance']['commit'][:7]}.{absent}\n\n![frontier](figures/price_{name}.png)\n\n"
        f"{report.table(rows, ('rule', 'passes', 'nats', '95 %', 'acceptance'))}\n\n"
        "The fewest passes of any setting that costs no more than a calibrated one:\n\n"
        f"{report.table(compared(records), ('rule', 'nats', 'passes', 'best without MI', 'ratio', 'best uncalibrated mi-bound'))}\n"
    )


def reliable(calibrations: Ledger, figures: Path) -> str:
    """Whether budgets are true, on draws that no calibration has seen."""
    checks: dict[str, list[dict[str, Any]]] = {}
    for record in calibrations.found.values():
        if record["settings"]["what"] == "reliability" and record["budget"] in CHECKED:
            checks.setdefault(record["settings"]["model"], []).append(record)
    if not checks:
        return ""
    draw_reliability(checks, figures / "price_reliability.png")
    rows = [
        {"model": name, "within 20 %": "yes" if abs(one["measured"] / one["budget"] - 1) <= 0.2 else "no"} | one | one["settings"]
        for name, some in checks.items()
        for one in some
    ]
    return (
        "## Is a budget what a pass loses?\n\nCalibrated `mi-bound` on other draws than it was fitted on; `charged` is the sum of its charges, "
        "all in nats a pass; the error is one standard error over sequences.\n\n![reliability](figures/price_reliability.png)\n\n"
        f"{report.table([row | {'charged': row['predicted']} for row in rows], ('model', 'budget', 'charged', 'measured', 'error', 'within 20 %', 'passes', 'sequences'))}\n\n"
    )


def page(ledger: Ledger, calibrations: Ledger, out: Path) -> str:
    """Everything, below what experiments/price_exact.py wrote."""
    figures = out.parent / "figures"
    about = ", ".join(f"{key} {value}" for key, value in provenance().items())
    return (
        f"{MARK}\n\n{reliable(calibrations, figures)}## Frontiers\n\nPrinted by `python experiments/price_frontiers.py --page` ({about}). Nats lost a sequence against one by one "
        "in the rule's own order; stars are calibrated `mi-bound`.\n\n"
        + "\n".join(filter(None, (section(name, ledger, figures) for name in SCENES)))
    )


def main() -> None:
    """Measure what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="*", default="all", choices=[*SCENES, "all"], metavar="SCENE")
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page")
    parser.add_argument("--first", type=int, help="only so many rules of each scene: the most telling stand first")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--records", type=Path, default=Path("runs/price"), help="folder")
    parser.add_argument("--out", type=Path, default=Path("docs/price.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    calibrations, ledger = Ledger(options.records / "calibrations.jsonl"), Ledger(options.records / "frontiers.jsonl")
    for name in [] if options.page else SCENES if options.scenes == "all" else options.scenes:
        priced(name, calibrations, ledger, options.seed, options.first)
    before = options.out.read_text().partition(MARK)[0] if options.out.is_file() else ""
    options.out.write_text(before.rstrip() + "\n\n" + page(ledger, calibrations, options.out))


if __name__ == "__main__":
    main()
