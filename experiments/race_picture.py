"""`python experiments/race_picture.py`: docs/figures/race.svg, one empty board filled by three rules, a pass at a time."""

import argparse
from pathlib import Path

from pairmi.api import decode
from pairmi.loading import load
from pairmi.provenance import provenance

RULES = {  # settings that docs/results.md chose for generating, unverified
    "sequential": ("sequential", "one position a pass"),
    "eb:budget=0.1": ("eb (EB-Sampler)", "looks at marginals"),
    "mi-bound:budget=0.1,entropy_weight=0.02,penalty=10": ("mi-bound (pairmi)", "looks at pairs"),
}
PASS, REST = 0.13, 3.0  # seconds that a pass takes in the picture, and that the end stands
CELL, GAP, TOP = 26, 40, 58


def runs(seed: int) -> list[dict]:
    """For each rule: the pass in which each cell was filled, with which digit, and what has become of the board."""
    model, found = load("sudoku"), []
    for rule, (name, about) in RULES.items():
        out = decode(model, 81 * ".", rule, seed=seed, steps=True)
        cells = {place: (number, symbol) for number, step in enumerate(out.steps, 1) for place, symbol in step.filled.items()}
        empty = model.vocab.encode(81 * ".")
        found.append({"name": name, "about": about, "passes": out.passes, "cells": cells, "judged": model.task.judge(empty, out.tokens)})
    return found


def board(run: dict, left: int) -> list[str]:
    """The cells and the words of one rule."""
    side = 9 * CELL
    lines = [f'<g transform="translate({left} 0)">', f'<text class="name" x="0" y="24">{run["name"]}</text>']
    lines += [f'<text class="about" x="0" y="42">{run["about"]}</text>', f'<rect class="field" y="{TOP}" width="{side}" height="{side}"/>']
    for place, (number, symbol) in sorted(run["cells"].items()):
        x, y = CELL * (place % 9), TOP + CELL * (place // 9)
        lines.append(f'<g class="c p{number}"><rect class="new" x="{x}" y="{y}" width="{CELL}" height="{CELL}"/>')
        lines.append(f'<text class="digit" x="{x + CELL // 2}" y="{y + 19}">{symbol}</text></g>')
    for k in range(10):
        width = 1.6 if k % 3 == 0 else 0.4
        lines.append(f'<path class="line" stroke-width="{width}" d="M0 {TOP + k * CELL}h{side}M{k * CELL} {TOP}v{side}"/>')
    y, lasts = TOP + side, side * run["passes"] / 81
    lines.append(f'<rect class="track" y="{y + 12}" width="{side}" height="5"/>')
    lines.append(f'<rect class="bar b{run["passes"]}" y="{y + 12}" width="{lasts:.1f}" height="5"/>')
    lines.append(f'<g class="c p{run["passes"]}"><text class="name" x="0" y="{y + 38}">{run["passes"]} passes, {run["judged"]}</text></g>')
    return [*lines, "</g>"]


def style(found: list[dict]) -> str:
    """One animation for each pass at which something appears, all of one length, so that they repeat together."""
    whole = PASS * max(run["passes"] for run in found) + REST
    numbers = sorted({number for run in found for number, _ in run["cells"].values()} | {run["passes"] for run in found})
    lines = [
        "text{font-family:system-ui,sans-serif;fill:#1d2733}.name{font-size:15px;font-weight:600}.about{font-size:12px;fill:#5b6875}",
        ".digit{font-size:15px;text-anchor:middle}.field{fill:#fff}.line{stroke:#1d2733;fill:none}.new{fill:#e8833a}.track{fill:#dfe4e9}",
        f".bar{{fill:#e8833a;transform-origin:0 0}}.c,.bar{{animation:{whole:.2f}s linear infinite}}.new{{opacity:0}}",
    ]
    for n in numbers:
        at = 100 * PASS * n / whole
        lines.append(f"@keyframes k{n}{{0%,{at:.2f}%{{opacity:0}}{at + 0.01:.2f}%,100%{{opacity:1}}}}.p{n}{{animation-name:k{n}}}")
        end = min(99.9, at + 100 * 6 * PASS / whole)
        lines.append(
            f"@keyframes n{n}{{0%,{at:.2f}%{{opacity:.85}}{end:.2f}%,100%{{opacity:0}}}}.p{n} .new{{animation:{whole:.2f}s n{n} linear infinite}}"
        )
    for n in sorted({run["passes"] for run in found}):
        at = 100 * PASS * n / whole
        lines.append(f"@keyframes b{n}{{0%{{transform:scaleX(0)}}{at:.2f}%,100%{{transform:scaleX(1)}}}}.b{n}{{animation-name:b{n}}}")
    lines.append("@media(prefers-reduced-motion:reduce){.c,.bar,.new{animation:none!important}}")
    return "\n".join(lines)


def picture(found: list[dict]) -> str:
    """The whole file."""
    width, height = 3 * 9 * CELL + 2 * GAP + 40, TOP + 9 * CELL + 58
    title = "; ".join(f"{run['name']}: {run['passes']} passes, {run['judged']}" for run in found)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">',
        f"<title>{title}</title>",
    ]
    lines += [f"<style>{style(found)}</style>", f'<rect width="{width}" height="{height}" rx="8" fill="#f6f7f9"/>']
    for n, run in enumerate(found):
        lines += board(run, 20 + n * (9 * CELL + GAP))
    return "\n".join([*lines, "</svg>", ""])


def main() -> None:
    """Print what is shown, write the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=3, help="of draws; with 3 the rules take about their mean numbers of passes")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs/figures/race.svg")
    options = parser.parse_args()
    found = runs(options.seed)
    for run in found:
        print(f"{run['name']}: {run['passes']} passes, {run['judged']}")
    made = f"<!-- python experiments/race_picture.py, seed {options.seed}; {provenance()} -->\n"  # no two dashes in a comment
    options.out.write_text(picture(found) + made)


if __name__ == "__main__":
    main()
