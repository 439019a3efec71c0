"""Pictures of prices: frontiers in nats over passes, and whether a budget is what a pass loses."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pairmi.bench import report

LEAST = 1e-3  # nats: less is as good as nothing, and would only stretch a picture
TICKS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # nats a pass
CALIBRATED = "mi-bound, calibrated"


def draw_frontier(found: Sequence[Mapping[str, Any]], file: Path, title: str = "") -> None:
    """Nats over passes, both on log scales: of each rule its settings, by their first number, and a line through what none of them beats.

    What loses nothing is at the bottom.
    """
    plt = report.pyplot()
    figure, axis = plt.subplots(figsize=(8, 5.5), layout="constrained")
    floor = min((one["nats"] for one in found if one["nats"] > LEAST), default=LEAST) / 3
    rules: dict[str, list[dict[str, Any]]] = {}
    for one in found:
        rule = CALIBRATED if "charge=calibrated" in one["rule"] else report.family(one["rule"])
        low, nats, high = (max(float(value), floor) for value in (one["interval"][0], one["nats"], one["interval"][1]))
        rules.setdefault(rule, []).append({"spec": one["rule"], "passes": one["passes"], "ends": (low, high), "nats": nats, "good": -nats})
    for rule, some in rules.items():
        ours = rule == CALIBRATED
        color, marker = ("k", "*") if ours else report.STYLES.get(rule, ("tab:brown", "."))
        best = report.frontier(some, "passes", "good")
        axis.plot([one["passes"] for one in best], [one["nats"] for one in best], color=color, lw=1.6 if ours else 0.8, alpha=0.7)
        axis.plot([one["passes"] for one in some], [one["nats"] for one in some], marker, color=color, ms=10 if ours else 6, label=rule)
        for one in some:
            axis.plot([one["passes"]] * 2, one["ends"], color=color, lw=0.8, alpha=0.35)
            number = re.search(r"=(\d[^,]*)", one["spec"])
            if number:
                axis.annotate(number[1], (one["passes"], one["nats"]), (5, 4), textcoords="offset points", fontsize=6, color=color)
    axis.set(xscale="log", yscale="log", xlabel="passes", ylabel="price (nats lost a sequence)", title=title)
    report.label_passes(axis)
    axis.grid(alpha=0.25)
    axis.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    report.save(figure, file)


def draw_reliability(checks: Mapping[str, Sequence[Mapping[str, Any]]], file: Path) -> None:
    """Measured nats a pass, with two standard errors, over the budget that was asked for; 20 % to both sides are shaded."""
    plt = report.pyplot()
    figure, axis = plt.subplots(figsize=(5, 4.5), layout="constrained")
    every = [one for some in checks.values() for one in some]
    values = [one[name] for one in every for name in ("budget", "measured")]
    ends = [min(values) / 1.5, 1.5 * max(values)]
    axis.plot(ends, ends, color="tab:gray", lw=0.8)
    axis.fill_between(ends, [0.8 * end for end in ends], [1.2 * end for end in ends], color="tab:gray", alpha=0.15, lw=0)
    for name, some in checks.items():
        asked, measured = [one["budget"] for one in some], [one["measured"] for one in some]
        errors = [min(2 * one["error"], 0.95 * one["measured"]) for one in some]
        axis.errorbar(asked, measured, errors, fmt="o-", ms=4, lw=1, capsize=3, label=name)
    axis.set(xscale="log", yscale="log", xlabel="budget (nats a pass)", ylabel="measured (nats a pass)")
    ticks = list[float]()
    for tick in sorted({one["budget"] for one in every}, key=lambda tick: (len(f"{tick:g}"), tick)):  # short names first; none over another
        ticks += [tick] if all(not 0.8 < tick / other < 1.25 for other in ticks) else []
    for side, shown in ((axis.xaxis, ticks), (axis.yaxis, [tick for tick in TICKS if ends[0] <= tick <= ends[1]])):
        side.set_ticks(shown, [f"{tick:g}" for tick in shown])
        side.set_ticks([], minor=True)
    axis.legend(frameon=False)
    axis.grid(alpha=0.25)
    report.save(figure, file)
