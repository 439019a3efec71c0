"""The price in exact worlds: whether its intervals cover, and whether tuning keeps its promise.

    python experiments/price_exact.py [--every 3] [--hardest]

`--hardest` adds tunings whose limit is a hair below the price of a setting, where a wrong choice is likeliest. Results go to the records, from which
`python experiments/price_frontiers.py --page` prints docs/price.md.
A rule's loss is a function of the finished sequence, so that one walk of all branches gives its whole distribution, and repeats are draws
from it: 200 of each, without sampling noise in the truth.
"""

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from pages.price_exact import sections, totals_of
from pairmi.bench.exact import evaluate
from pairmi.bench.grid import all_settings
from pairmi.bench.worlds import full_probe
from pairmi.loading import load
from pairmi.pricing.interval import mean_interval, student, upper_bound
from pairmi.provenance import provenance
from pairmi.spec import rule
from pairmi.tasks.tables import WORLDS
from pairmi.tuning import Evidence, family_of, fixed_sequence
from studies.exact_price import ExactPrice, exact_price

REPEATS = 200
SAMPLES = (24, 64, 256)
FAMILIES = ("mi-bound:budget=0.001..1", "eb:budget=0.01..2", "threshold:threshold=0.999|0.99|0.95|0.9|0.8|0.7|0.6|0.5|0.4")
LIMITS = (0.1, 0.3, 1.0)  # nats a sequence
CANVASES = (128, 512)


def walked(world: str, specs: Sequence[str]) -> dict[str, tuple[ExactPrice, float]]:
    """Every setting with its exact price, and how far the branch-walked KL is from it."""
    model = load(world)
    empty, found = torch.full((model.length,), model.vocab.size), {}
    for spec in tqdm(specs, desc=world):
        selector = rule(full_probe(spec), model)
        price = exact_price(model.backbone, empty, selector)
        found[spec] = (price, abs(price.nats - evaluate(model.backbone, empty, selector).kl))
    return found


def draws(price: ExactPrice, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return rng.choice(price.each.numpy(), p=(price.mass / price.mass.sum()).numpy(), size=size)


def plain_student(values: np.ndarray) -> tuple[float, float]:
    half = student(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return values.mean() - half, values.mean() + half


def coverage(prices: Sequence[ExactPrice], rng: np.random.Generator) -> list[dict[str, Any]]:
    """How often the interval holds the exact price, over all distributions that differ."""
    rows = []
    for count in SAMPLES:
        ours, theirs, wide = [], [], []
        for price in prices:
            samples = draws(price, (REPEATS, count), rng)
            for kept, interval in ((ours, mean_interval), (theirs, plain_student)):
                kept.append(np.mean([low - 1e-12 <= price.nats <= high + 1e-12 for low, high in map(interval, samples)]))
            wide.append(np.median([mean_interval(x)[1] for x in samples[:50]]) / price.nats)
        for name, kept in (("ours", ours), ("Student's t", theirs)):
            rows.append(
                {"sequences": count, "interval": name, "distributions": len(kept), "mean": float(np.mean(kept)), "lowest": float(min(kept)),
                 "below 93 %": sum(x < 0.93 for x in kept), "upper end / price": float(np.median(wide)) if name == "ours" else ""}
            )  # fmt: skip
    return rows


def promise(found: dict[str, ExactPrice], limit: float, count: int, length: int, rng: np.random.Generator) -> dict[str, Any] | None:
    """200 tunings: how often the limit is broken, and the passes over those of the fastest setting that keeps it."""
    admissible = [price.passes for price in found.values() if price.nats <= limit]
    if not admissible or len(admissible) == len(found):
        return None  # nothing to choose
    broken, ratios, sequential = 0, [], 0

    def measured(spec: str) -> Evidence:
        values = draws(found[spec], (count,), rng)
        return Evidence(spec, float(values.mean()), upper_bound(values), found[spec].passes, (0.0, 0.0))

    for _ in range(REPEATS):
        best, _ = fixed_sequence(found, measured, limit)
        broken += best is not None and found[best.rule].nats > limit
        sequential += best is None
        ratios.append((length if best is None else best.passes) / min(admissible))
    return {
        "limit": limit,
        "canvases": count,
        "broken": broken,
        "tunings": REPEATS,
        "passes ratio": float(np.mean(ratios)),
        "sequential": sequential,
    }


def hardest(worlds: Sequence[str], rng: np.random.Generator) -> dict[str, Any]:
    """For each setting that loses something a limit at 99.9 % of its price: how often 200 tunings ship it or a worse one."""
    rows = []
    for world in worlds:
        for family in FAMILIES:
            path = {spec: price for spec, (price, _) in walked(world, family_of(family)).items()}
            for limit in sorted({round(0.999 * price.nats, 9) for price in path.values() if price.nats > 1e-6}):
                for count in CANVASES:
                    one = promise(path, limit, count, load(world).length or 0, rng)
                    rows += [] if one is None else [{"world": world, "family": family.partition("=")[0]} | one]
    return {"worlds": list(worlds), "totals": totals_of(rows), "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="take every n-th setting of the grid")
    parser.add_argument(
        "--hardest", nargs="*", choices=WORLDS, metavar="WORLD", help="add the hardest limits to the records; default: all worlds"
    )
    parser.add_argument("--records", type=Path, default=Path(__file__).parent / "records" / "price-exact.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = json.loads(options.records.read_text()) if options.records.is_file() else {}
    if options.hardest is not None and not found:
        parser.error(f"--hardest adds to {options.records}, which is not there; first run without it")
    if options.hardest is None:
        kept = {"hardest": found["hardest"]} if "hardest" in found else {}
        found = measured(options.every) | kept
    else:
        found["hardest"] = hardest(options.hardest or tuple(WORLDS), np.random.default_rng(1))
    options.records.write_text(json.dumps(found, indent=1) + "\n")
    print(sections(found))


def measured(every: int) -> dict[str, Any]:
    """All that is measured but the hardest limits."""
    rng, worst, settings, skews = np.random.default_rng(0), 0.0, 0, list[float]()
    different: dict[tuple[Any, ...], ExactPrice] = {}
    promises = []
    for world in WORLDS:
        grid = walked(world, all_settings()[::every])
        for price, gap in grid.values():
            worst, settings = max(worst, gap), settings + 1
            spread = math.sqrt(float(price.mass @ (price.each - price.nats) ** 2))
            if price.nats > 1e-9 and spread > 1e-9:
                if (key := (world, round(price.nats, 6), round(spread, 6))) not in different:
                    skews.append(float(price.mass @ (price.each - price.nats) ** 3) / spread**3)
                different[key] = price
        for family in FAMILIES:
            path = {spec: price for spec, (price, _) in walked(world, family_of(family)).items()}
            for limit in LIMITS:
                for count in CANVASES:
                    one = promise(path, limit, count, load(world).length or 0, rng)
                    promises += [] if one is None else [{"world": world, "family": family.partition("=")[0]} | one]
    told = {"settings": {"every": every, "repeats": REPEATS, "worlds": len(WORLDS)}, "provenance": provenance(), "compared": settings}
    covered = coverage(list(different.values()), rng)
    return told | {"gap": worst, "skewness": max(skews), "coverage": covered, "promises": promises}


if __name__ == "__main__":
    main()
