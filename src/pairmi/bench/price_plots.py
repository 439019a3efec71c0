"""Pictures of prices: frontiers in nats over passes, and whether a budget is what a pass loses."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pairmi.bench import report

LEAST = 1e-3  # nats: less is as good as nothing, and would only stretch a picture
SIDES = ((5, 5), (5, -5), (-5, 5), (-5, -5), (6, 12), (6, -12), (-6, 12), (-6, -12), (8, 19), (8, -19))  # of a point, in points
TICKS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # nats a pass


def draw_frontier(found: Sequence[Mapping[str, Any]], file: Path, title: str = "") -> None:
    """Nats over passes, both on log scales, every point labelled; calibrated settings are stars; what loses nothing is at the bottom."""
    plt = report.pyplot()
    figure, axis = plt.subplots(figsize=(8, 5.5), layout="constrained")
    names = list[tuple[str, float, float]]()
    floor = min((one["nats"] for one in found if one["nats"] > LEAST), default=LEAST) / 3
    ours = sorted((one for one in found if "charge=calibrated" in one["rule"]), key=lambda one: float(one["passes"]))
    if ours:
        heights = [max(one["nats"], floor) for one in ours]
        axis.plot([one["passes"] for one in ours], heights, "-", color="k", lw=1, label="mi-bound, calibrated")
    for one in found:
        color, marker = ("k", "*") if one in ours else report.STYLES.get(report.family(one["rule"]), ("tab:brown", "."))
        height = max(one["nats"], floor)
        axis.plot([one["passes"]], [height], marker, color=color, ms=9 if one in ours else 6, alpha=0.85)
        low, high = (max(end, floor) for end in one["interval"])
        axis.plot([one["passes"]] * 2, [low, high], "-", color=color, lw=0.8, alpha=0.4)
        text = one["rule"].replace("mi-bound:charge=calibrated,", "").replace("mi-bound:budget", "mi-bound budget")
        text += " (0)" if one["nats"] < floor else ""
        names.append((text, float(one["passes"]), float(height)))
    axis.set(xscale="log", yscale="log", xlabel="passes", ylabel="price (nats lost a sequence)", title=title)
    report.label_passes(axis)
    axis.grid(alpha=0.25)
    _annotate(figure, axis, names)
    report.save(figure, file)


def _annotate(figure: Any, axis: Any, names: Sequence[tuple[str, float, float]]) -> None:
    """A name beside each point: at the first of `SIDES` where it covers neither a point nor another name, or else as usual."""
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    marks = [axis.transData.transform((x, y)) for _, x, y in names]
    taken = list[Any]()
    for text, x, y in names:
        kept = None
        for side, (right, up) in enumerate((*SIDES, SIDES[0])):
            label = axis.annotate(
                text, (x, y), (right, up), textcoords="offset points", fontsize=6, ha="left" if right > 0 else "right", va="center"
            )
            box = label.get_window_extent(renderer)
            free = not any(box.overlaps(other) for other in taken) and not any(box.contains(*mark) for mark in marks)
            if side == len(SIDES) or (free and box.x0 >= axis.bbox.x0):
                kept = box
                break
            label.remove()
        taken.append(kept)


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
