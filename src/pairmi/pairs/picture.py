"""A heat map of pairs: labels that can be read, letters beside it, colours that a few strong pairs do not use up."""

from importlib import import_module
from typing import Any

from pairmi.optional import needed
from pairmi.pairs.scores import Scores

LETTERS = 130  # positions up to which every one has its letter; beyond, numbers alone
TICKS = 28  # names on an axis, at the most


def pyplot() -> Any:
    """Matplotlib without a screen."""
    needed("matplotlib", "figure", "'pairmi[plot]'").use("Agg")
    return import_module("matplotlib.pyplot")


def drawn(scores: Scores, title: str | None = None) -> Any:
    """The figure; whoever asked for it saves it, or shows it."""
    pyplot()
    from matplotlib.figure import Figure

    count = len(scores.shown)
    side = min(16.0, max(4.2, 0.115 * count))
    figure = Figure(figsize=(side + 1.4, side + 0.6), layout="constrained")
    axis = figure.subplots()
    axis.set_facecolor("#d9d9d9")  # the diagonal
    image = axis.imshow(scores.square, cmap="cividis", vmin=0, vmax=scores.ceiling, interpolation="nearest")
    _label(axis, scores)
    if scores.directed:
        axis.set(ylabel="changed", xlabel="observed")
    axis.set_title(title or scores.title, fontsize=10)
    figure.colorbar(image, label=scores.unit, shrink=0.8, extend="max", aspect=30)
    return figure


def _label(axis: Any, scores: Scores) -> None:
    """Names at regular distances; between them the symbols, where there is room and they are known."""
    names, symbols = [scores.names[i] for i in scores.shown], [scores.symbols[i] for i in scores.shown]
    step = next(step for step in (1, 2, 5, 9, 10, 20, 25, 50, 100, 200, 500, 1000, len(names)) if len(names) / step <= TICKS)
    lettered = len(names) <= LETTERS and any(symbols)
    first = step - 1 if names[step - 1] == str(step) else 0  # 10, 20, ... where positions are numbered
    ticks = range(first, len(names), step)
    wide = max(len(symbol) for symbol in symbols) > 1
    for side, turned in ((axis.xaxis, True), (axis.yaxis, False)):
        far = 4 if not lettered else 26 if wide else 12
        side.set_ticks(ticks, [names[n] for n in ticks])
        side.set_tick_params(which="major", labelsize=7, pad=far, rotation=90 if turned and max(map(len, names)) > 2 else 0, length=3)
        if lettered:
            side.set_ticks(range(len(names)), symbols, minor=True)
            side.set_tick_params(which="minor", labelsize=5.5, length=0, pad=3, rotation=90 if turned and wide else 0)
            side.remove_overlapping_locs = False
