"""Tables for people and frontier plots."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pairmi.pairs.picture import pyplot as pyplot


def table(records: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """A Markdown table; numbers with four significant digits."""
    cells = [[_cell(record.get(column, "")) for column in columns] for record in records]
    widths = [max(len(column), *(len(row[n]) for row in cells)) if cells else len(column) for n, column in enumerate(columns)]
    lines = [columns, ["-" * width for width in widths], *cells]
    return "\n".join("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "0" if abs(value) < 1e-12 else f"{value:.4g}"
    return str(value)


def frontier(records: Sequence[Mapping[str, Any]], cost: str, quality: str) -> list[Mapping[str, Any]]:
    """The records that no other beats in both: cheapest first, quality rising."""
    best: list[Mapping[str, Any]] = []
    for record in sorted(records, key=lambda r: (r[cost], -r[quality])):
        if not best or record[quality] > best[-1][quality] + 1e-12:
            best.append(record)
    return best


def family(spec: str) -> str:
    """The rule of a specification."""
    return spec.partition(":")[0]


def save(figure: Any, file: Path) -> None:
    """Write a figure, and forget it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)
    pyplot().close(figure)


STYLES = dict(
    zip(
        ("sequential", "top-k", "eb", "threshold", "factor", "klass", "maskgit", "mi-guided", "mi-bound", "independent-set", "demask"),
        (("k", "*"), ("tab:gray", "o"), ("#0072B2", "s"), ("#56B4E9", "D"), ("#009E73", "v"), ("#999933", "P"), ("#882255", "X"),
         ("#E69F00", "^"), ("#D55E00", "o"), ("#CC79A7", "h"), ("#117733", "d")),
        strict=True,
    )
)  # fmt: skip


def label_passes(axis: Any) -> None:
    """A logarithmic axis with plain numbers that do not overlap."""
    low, high = axis.get_xlim()
    ticks = [tick for tick in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 81, 128) if low <= tick <= high]
    axis.set_xticks(ticks, [str(tick) for tick in ticks], minor=False)
    axis.set_xticks([], minor=True)


def draw_frontiers(panels: Mapping[str, Sequence[Mapping[str, Any]]], cost: str, quality: str, file: Path) -> None:
    """One panel per key: the frontier of every rule, quality against the logarithm of cost."""
    plt = pyplot()
    columns = min(4, len(panels))
    lines = -(-len(panels) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(4.2 * columns, 3.6 * lines), squeeze=False, layout="constrained")
    for axis, (title, records) in zip(axes.flat, panels.items(), strict=False):
        for rule in dict.fromkeys(family(record["rule"]) for record in records):
            best = frontier([record for record in records if family(record["rule"]) == rule], cost, quality)
            color, marker = STYLES.get(rule, ("tab:brown", "."))
            axis.plot([r[cost] for r in best], [r[quality] for r in best], color=color, marker=marker, ms=5, lw=1.3, alpha=0.85, label=rule)
        axis.set(title=title, xlabel=cost, ylabel=quality, xscale="log")
        label_passes(axis)
        axis.grid(alpha=0.25)
    for axis in list(axes.flat)[len(panels) :]:
        axis.axis("off")
    handles = {label: handle for axis in axes.flat for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5, frameon=False)
    save(figure, file)
