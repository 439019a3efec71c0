"""`make demo`, or `python experiments/demo.py`: Sudoku boards from nothing, by the tuned rule, one by one, and by the best rule without MI."""

import sys
import time
from pathlib import Path
from typing import Any

import pairmi
from pairmi.bench import report
from pairmi.model import Model
from pairmi.results import Result

WITHOUT_MI = "eb:budget=0.1"  # the cheapest without MI among those measured in docs/price.md
PICTURE = Path("pairmi-demo.png")


def decoded(model: Model, spec: str, boards: int) -> tuple[dict[str, Any], Result]:
    """What a rule did with empty boards, and the first of them with every pass explained."""
    began = time.perf_counter()
    filled = pairmi.decode(model, ["." * 81] * boards, spec)
    seconds = time.perf_counter() - began
    valid = sum(model.task.conflict(one.tokens) is None for one in filled)
    figures = {
        "rule": spec,
        "valid": f"{valid} of {boards}",
        "passes": sum(one.passes for one in filled) / boards,
        "seconds": round(seconds, 1),
    }
    return figures, pairmi.decode(model, "." * 81, spec, steps=True)


def draw(shown: dict[str, Result], file: Path) -> None:
    """The first board of each rule, every cell coloured by the pass that filled it."""
    plt = report.pyplot()
    figure, axes = plt.subplots(1, len(shown), figsize=(4.2 * len(shown), 4.6), squeeze=False, layout="constrained")
    for axis, (name, result) in zip(axes.flat, shown.items(), strict=True):
        when = {place: number for number, step in enumerate(result.steps, 1) for place in step.filled}
        image = axis.imshow([[when[9 * row + column] for column in range(9)] for row in range(9)], cmap="cividis", vmin=1, vmax=81)
        for place, digit in enumerate(result.text):
            axis.text(place % 9, place // 9, digit, ha="center", va="center", color="w" if when[place] < 55 else "k", fontsize=11)
        for edge in (2.5, 5.5):
            axis.axhline(edge, color="w", lw=1.5)
            axis.axvline(edge, color="w", lw=1.5)
        axis.set(xticks=[], yticks=[])
        axis.set_title(f"{name}\n{result.passes} passes", fontsize=9)
    figure.colorbar(image, ax=list(axes.flat), label="filled in pass", shrink=0.8)
    report.save(figure, file)


def main(boards: int = 4, name: str = "sudoku", picture: Path = PICTURE) -> int:
    """A table, a picture, and where to go from here."""
    model = pairmi.load(name)
    tuned = model.rule or "mi-bound"
    print(f"{model}\n{boards} boards from nothing; price: nats lost a board against one by one, on these boards\n")
    records, shown = [], {}
    for spec in ("sequential", WITHOUT_MI, tuned):
        figures, shown[spec] = decoded(model, spec, boards)
        price = pairmi.price(model, "." * 81, spec, sequences=boards).nats if spec != "sequential" else 0.0
        records.append(figures | {"price": price})
    print(report.table(records, ("rule", "passes", "seconds", "price", "valid")))
    draw(shown, picture)
    print(f"\nEach rule's first board, coloured by the pass that filled each cell: {picture.resolve()}")
    print("See what depends on what, and watch the rules decode: pairmi explore")
    print("The same for a model of your own: pairmi fit --backbone FOLDER --data FILE --minutes 60 --out DIR")
    return 0


if __name__ == "__main__":
    sys.exit(main())
