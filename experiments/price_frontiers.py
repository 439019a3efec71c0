"""Frontiers in nats over passes, every rule of the catalogue, and whether calibrated budgets are true. Writes docs/price.md.

    python experiments/price_frontiers.py [generating protein solving antiberty text] [--page]

Every rule is priced on the same canvases and streams, in bfloat16; calibrated `mi-bound` with the map that experiments/calibrations.py
fitted on other draws. Each measurement is kept in --records, so that an interrupted run goes on; --page writes what there is, and leaves
the section of a scene that the records do not hold whole as it was printed.
`--gain`: what calibration gains over the best (penalty, entropy_weight) of the frontier, on other draws than those it is the best of.
"""

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from calibrations import PLANS, RECORDS, calibrated, canvases_for, charge_of, checks_of, guided, key_of, levels_of
from pages import price_exact
from pages.price import chosen_knobs, gain_section, gained, headline, refolded, reliable, section, short
from pages.price_exact import INTRODUCTION
from pages.price_overview import GAINED, overview, table_of
from pairmi import tuning
from pairmi.bench.ledger import Ledger
from pairmi.bench.price_plots import draw_frontier
from pairmi.model import Model
from pairmi.provenance import provenance
from pairmi.tasks.sudoku.puzzles import TEST, minimal_puzzles

CHARGED = "mi-bound:charge=calibrated,"
AS_PRINTED = (
    "Calibrated settings were measured again; the others stand as printed before, and their prices count as known in intervals.\n\n"
)


def settings(rule: str, *values: str) -> tuple[str, ...]:
    """Some settings of a rule."""
    return tuple(f"{rule}:{value}" for value in values)


KNOBS = (
    *settings("mi-bound", "budget=0.02", "budget=0.05", "budget=0.2"),
    *(
        f"mi-bound:budget={b:g},entropy_weight={w:g},penalty={p}"
        for b, w, p in ((0.06, 0.02, 4), (0.02, 0.02, 4), (0.2, 0.02, 4), (0.1, 0.05, 2))
    ),
)
BOARDS = (
    *settings("eb", "budget=0.1", "budget=0.5", "budget=1.5"),
    *settings("top-k", "k=2", "k=4"),
    *settings("threshold", "threshold=0.9", "threshold=0.7"),
    *settings("factor", "factor=0.2", "factor=0.8"),
    *settings("klass", "threshold=0.9,drift=0.1,history=1", "threshold=0.7,drift=0.1,history=1"),
    *settings("maskgit", "steps=24,noise=0", "steps=40,noise=0"),
    *KNOBS,
    *settings("mi-guided", "budget=0.6", "budget=0.2"),
    *settings("demask", "budget=0.1", "budget=0.03"),
    *settings("independent-set", "threshold=0.005", "threshold=0.02"),
    *(f"{CHARGED}budget={b:g}" for b in (0.04, 0.15, 0.01, 0.08, 0.3)),
)
CHAINS = (
    *settings("top-k", "k=4", "k=2", "k=8"),
    *settings("eb", "budget=8", "budget=4", "budget=16"),
    *settings("threshold", "threshold=0.15", "threshold=0.3"),
    *settings("factor", "factor=4", "factor=7"),
    *settings("klass", "threshold=0.2,drift=0.05", "threshold=0.15,drift=0.1,history=1"),
    *settings("maskgit", "steps=12,noise=0", "steps=24,noise=0"),
    *KNOBS,
    *settings("mi-guided", "budget=8", "budget=16"),
    *settings("demask", "budget=0.5", "budget=0.1"),
    *settings("independent-set", "threshold=0.02", "threshold=0.005"),
    *(f"{CHARGED}budget={b:g}" for b in (0.04, 0.15, 0.01, 0.08, 0.3)),
)
ANTIBODIES = (
    *settings("top-k", "k=4"),
    *settings("eb", "budget=0.5", "budget=2"),
    *settings("threshold", "threshold=0.9"),
    *settings("factor", "factor=0.5"),
    *settings("klass", "threshold=0.8,drift=0.1,history=1"),
    *settings("maskgit", "steps=24,noise=0"),
    *settings("mi-bound", "budget=0.05"),
    *settings("mi-guided", "budget=1"),
    *settings("demask", "budget=0.02"),
    *settings("independent-set", "threshold=0.001"),
    *(f"{CHARGED}budget={b:g}" for b in (0.05, 0.2, 0.6, 0.02)),
)
SENTENCES = (
    *settings("top-k", "k=2", "k=3"),
    *settings("eb", "budget=1", "budget=3", "budget=6"),
    *settings("threshold", "threshold=0.6", "threshold=0.3"),
    *settings("factor", "factor=0.6"),
    *settings("klass", "threshold=0.3,drift=0.3,history=1"),
    *settings("maskgit", "steps=6,noise=0"),
    *settings("mi-bound", "draws=2,budget=0.3", "draws=2,budget=1"),
    *settings("mi-guided", "draws=2,budget=3"),
    *settings("demask", "draws=2,budget=0.3"),
    *settings("independent-set", "draws=2,threshold=0.05"),
    *(f"{CHARGED}draws=2,budget={b:g}" for b in (0.1, 0.3, 1, 0.05, 0.5)),
)


NOT_SHIPPED = (
    "The calibration used here comes from 4 sequences and does not hold (see `nats a pass` below): it is not in the head that ships.\n\n"
)


@dataclass(frozen=True)
class Scene:
    """What is decoded, by which model, and the rules that are tried on it."""

    model: str
    sequences: int
    title: str
    rules: tuple[str, ...]
    note: str = ""


SCENES = {
    "generating": Scene("sudoku", 48, "9x9 Sudoku from the empty board", BOARDS),
    "protein": Scene("protein", 64, "proteins of 64 residues", CHAINS),
    "solving": Scene("sudoku", 32, "minimal 9x9 puzzles with one solution", BOARDS),
    "antiberty": Scene("antiberty", 12, "antibody chains of 118 residues", ANTIBODIES, NOT_SHIPPED),
    "text": Scene("albert-zh", 32, "half-masked Chinese sentences", SENTENCES),
}


def canvases_of(name: str, model: Model) -> list[Any]:
    """What a scene decodes."""
    scene = SCENES[name]
    if name == "solving":
        return list(minimal_puzzles(scene.sequences, TEST + 18).canvases)
    return canvases_for(model, scene.model, scene.sequences, PLANS[scene.model].calibrate + PLANS[scene.model].check)


def priced(name: str, rules: Sequence[str], calibrations: Ledger, ledger: Ledger, seed: int) -> list[dict[str, Any]]:
    """The prices of some rules in a scene, from the records or measured now."""
    scene, model = SCENES[name], guided(SCENES[name].model)
    if any(rule.startswith(CHARGED) for rule in rules):
        model = calibrated(scene.model, calibrations)  # which takes longer than all of this, if it is not in the records
    canvases, found = canvases_of(name, model), []
    for spec in tqdm(rules, desc=name):
        charge = {"calibration": model.calibration.about()} if spec.startswith(CHARGED) and model.calibration else {}
        key = key_of(scene.model) | {"scene": name, "rule": spec, "sequences": len(canvases), "seed": seed} | charge
        found.append(ledger.measured(key, lambda: tuning.price(model, canvases, spec, seed=seed, sequences=len(canvases)).about()))  # noqa: B023
    return found


def current(ledger: Ledger, calibrations: Ledger, seed: int) -> dict[str, list[dict[str, Any]]]:
    """The records of each scene that are of its present size, head and calibration."""
    found: dict[str, list[dict[str, Any]]] = {}
    charges = {name: charge.about() for name in PLANS if (charge := charge_of(name, calibrations)) is not None}
    for record in ledger.found.values():
        told = record["settings"]
        scene = SCENES[told["scene"]]
        right = told["seed"] == seed and told["rule"] in scene.rules and key_of(scene.model).items() <= told.items()
        right = right and ("calibration" not in told or told["calibration"] == charges.get(scene.model))
        if right and told["sequences"] == scene.sequences:
            found.setdefault(told["scene"], []).append(record)
    return found


def gains(ledger: Ledger, calibrations: Ledger, seed: int, kept: Mapping[str, str], measure: bool) -> tuple[list[dict[str, Any]], str]:
    """What calibration gains over the best knobs, chosen at one seed (or by what the page holds of it) and compared at the next."""
    before, lines, sizes = current(ledger, calibrations, seed), list[dict[str, Any]](), list[str]()
    for name in ("generating", "protein"):
        records = before.get(name) or printed_prices(kept.get(headline(SCENES[name].title), ""))
        ours, best = [rule for rule in SCENES[name].rules if rule.startswith(CHARGED)], chosen_knobs(records)
        if measure:
            priced(name, (*best, *ours), calibrations, ledger, seed + 1)
        after = current(ledger, calibrations, seed + 1).get(name, [])
        if {record["rule"] for record in after} >= {*best, *ours} and best:
            lines += gained(name, [one for one in after if one["rule"] in best], [one for one in after if one["rule"] in ours])
            sizes.append(f"{name}: {after[0]['sequences']}")
    return lines, ", ".join(sizes)


def printed(text: str) -> dict[str, str]:
    """The sections of scenes that a page holds, by title."""
    parts = text.split("\n### ")[1:]
    return {part.partition("\n")[0]: refolded(f"### {part.strip()}\n") for part in parts}


def printed_checks(text: str) -> dict[str, list[dict[str, Any]]]:
    """The checks of budgets that a page holds, by model."""
    part = text.partition("## Is a budget what a pass loses?")[2].partition("\n## ")[0].partition("\n\nWhat charges")[0]
    found: dict[str, list[dict[str, Any]]] = {}
    for told in table_of(part):
        numbers = {name: float(told[name]) for name in ("budget", "measured", "error", "passes", "sequences")}
        found.setdefault(told["model"], []).append(numbers | {"predicted": float(told["charged"]), "worst": told["worst"]})
    return found


def printed_prices(section: str) -> list[dict[str, Any]]:
    """What the long table of a section says, as records: a price counts for every sequence, for nothing is known of each."""
    begin, told = (
        section.find("<summary>"),
        re.search(r"(\d+) sequences, .*?commits? ([^;]*); sequential decoding takes ([\d.]+) passes", section),
    )
    if begin < 0 or told is None:
        return []
    size, about = int(told.group(1)), {"rows": float(told.group(3)), "seed": 0, "sequences": int(told.group(1))}
    about["provenance"] = {"commit": told.group(2)}
    found = []
    for one in table_of(section[begin:].partition("</details>")[0]):
        plain = {"rule": one["rule"], "interval": [float(end) for end in one["95 %"].strip("[]").split(",")]}
        plain |= {name: float(one.get(name, 0)) for name in ("nats", "passes", "acceptance", "probe_rows")}
        found.append(about | plain | {"each": [plain["nats"]] * size})
    return found


def page(records: Path, ledger: Ledger, calibrations: Ledger, out: Path, seed: int) -> str:
    """Everything."""
    figures, found, text = out.parent / "figures", current(ledger, calibrations, seed), out.read_text() if out.is_file() else ""
    before, kept_checks = printed(text), printed_checks(text)
    checks = {name: some for name in PLANS if (some := checks_of(name, calibrations) or kept_checks.get(name, []))}
    levels = {name: some for name in PLANS if (some := levels_of(name, calibrations))}
    sections, missing = dict[str, tuple[str, str]](), list[str]()
    for name, scene in SCENES.items():
        kept = before.get(headline(scene.title))
        if name in found and (kept is None or all(rule in rules_of(found[name]) for rule in scene.rules if rule.startswith(CHARGED))):
            old = [one for one in printed_prices(kept or "") if one["rule"] in set(scene.rules) - rules_of(found[name])]
            every, note = [*found[name], *old], (AS_PRINTED if old else "") + scene.note
            sections[scene.title] = scene.model, section(name, scene.title, scene.model, scene.rules, every, figures, note)
        elif kept is not None:
            draw_frontier(printed_prices(kept), figures / f"price_{name}.png", scene.title)
            sections[scene.title] = scene.model, kept
        else:
            missing.append(scene.title)
    absent = f"Not measured yet: {', '.join(missing)}.\n\n" if missing else ""
    about = ", ".join(f"{key} {value}" for key, value in provenance().items())
    exact = json.loads((records / "price-exact.json").read_text()) if (records / "price-exact.json").is_file() else None
    gain, sizes = gains(ledger, calibrations, seed, before, False)
    return (
        f"{INTRODUCTION}\n## In short\n\nPrinted by `python experiments/price_frontiers.py --page` ({about}).\n\n"
        "Passes of calibrated `mi-bound` by those of others at equal price in nats:\n\n"
        f"{overview(sections)}\n\n{GAINED}{short(checks, gain)}{price_exact.short(exact) if exact else ''}\n"
        f"{reliable(checks, levels, figures)}{gain_section(gain, sizes)}{price_exact.sections(exact) if exact else ''}\n## Frontiers\n\n"
        "Nats lost a sequence against one by one in the rule's own order; "
        "stars are calibrated `mi-bound`. At equal price: between two settings stands drawing one of them for each sequence, which takes the "
        "mean of their passes and loses at most the mean of their nats; sequential decoding is a setting of everybody. Intervals are 95 %, "
        "by a bootstrap over sequences, the same for all settings.\n\n" + absent + "\n".join(text for _, text in sections.values())
    )


def rules_of(records: Sequence[Mapping[str, Any]]) -> set[str]:
    """The rules that were measured."""
    return {record["rule"] for record in records}


def main() -> None:
    """Measure what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="*", default="all", choices=[*SCENES, "all"], metavar="SCENE")
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page")
    parser.add_argument("--uncalibrated", action="store_true", help="only rules that need no calibration")
    parser.add_argument("--only", default="", metavar="TEXT", help="only rules whose name holds this")
    parser.add_argument("--gain", action="store_true", help="measure what calibration gains over the best knobs, instead")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--records", type=Path, default=RECORDS, help="folder")
    parser.add_argument("--out", type=Path, default=Path("docs/price.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    calibrations, ledger = Ledger(options.records / "price-calibrations.jsonl"), Ledger(options.records / "price-frontiers.jsonl")
    if options.gain:
        gains(ledger, calibrations, options.seed, printed(options.out.read_text()) if options.out.is_file() else {}, True)
    for name in [] if options.page or options.gain else SCENES if options.scenes == "all" else options.scenes:
        rules = [rule for rule in SCENES[name].rules if options.only in rule and not (options.uncalibrated and rule.startswith(CHARGED))]
        priced(name, rules, calibrations, ledger, options.seed)
    options.out.write_text(page(options.records, ledger, calibrations, options.out, options.seed))


if __name__ == "__main__":
    main()
