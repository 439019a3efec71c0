"""What the pages say of heads from drawn labels: tables and a picture over the number of rows."""

from pathlib import Path
from typing import Any

from pairmi.bench import report
from pairmi.bench.ledger import Ledger
from pairmi.pairs.picture import pyplot

Record = dict[str, Any]
COLUMNS = ("head", "loss", "rows", "states", "stopped at", "R2", "Spearman")
BEYOND = ("backbone", "states", "share above", "R2 of the rest")
EQUAL = ("backbone", "labels", "states", "rows", "stopped at", "R2", "Spearman", "test states")
COST = ("parameters", "flop_share", "head_ms", "pass_ms", "time_share", "rows")


def measured(records: Path, name: str) -> list[Record]:
    """Every head of a backbone, those in the package first."""
    every = [one for one in Ledger(records).found.values() if one["settings"].get("heads") == name]
    found = [one for one in every if not {"beyond", "equal"} & set(one["settings"])]
    return sorted(found, key=lambda one: (one["settings"].get("start", False), one["settings"].get("budget", 0)))


def beyond(records: Path, names: list[str]) -> str:
    """How much of the `kl` form no mutual information could be, a line for each backbone."""
    found = {one["settings"]["heads"]: one for one in Ledger(records).found.values() if "beyond" in one["settings"]}
    return report.table([{"backbone": name} | found[name] for name in names if name in found], BEYOND)


def equal_rows(records: Path) -> str:
    """Heads from labels of several kinds at equal rows; nothing where there are none."""
    rows = []
    for one in Ledger(records).found.values():
        if one["settings"].get("equal") and "sizes" in one["settings"]:
            draws, positions = one["settings"]["draws"], one["settings"]["positions"]
            asked = f"{draws} draw{'s' * (draws > 1)}" if draws else "every symbol"
            rows.append({"backbone": one["settings"]["heads"], "labels": f"{asked}, {positions} positions"} | one)
    return report.table(sorted(rows, key=lambda one: (one["backbone"], one["states"])), EQUAL) if rows else ""


def made(records: Path, name: str) -> list[Record]:
    """Those that were trained here."""
    return [one for one in measured(records, name) if "sizes" in one["settings"] and "cost" not in one["settings"]]


def line(one: Record) -> Record:
    """A head as a line of a table."""
    work = one["settings"]
    if "sizes" not in work:
        return {"head": "in the package", "R2": one["R2"], "Spearman": one["Spearman"]}
    shape = f"{work['sizes']['inner']}/{work['sizes']['forms']}x{work['sizes']['rank']}"
    start = "from the one in the package" if work["start"] else "from nothing"
    return {"head": f"{start}, {shape}", "loss": work["loss"]} | {name: one[name] for name in COLUMNS[2:]}


def heads_table(records: Path, name: str) -> tuple[str, Record, Record | None]:
    """The table of a backbone, its best head by the families to stop by, and what that costs."""
    found = measured(records, name)
    best = max(made(records, name), key=lambda one: one["R2 to stop by"])
    costs = [one for one in found if "cost" in one["settings"]]
    rows = [line(one) for one in found if "cost" not in one["settings"]]
    return report.table([dict.fromkeys(COLUMNS, "") | row for row in rows], COLUMNS), best, costs[-1] if costs else None


def picture(records: Path, names: list[str], file: Path) -> None:
    """R2 over the rows that the labels cost, a panel for each backbone."""
    plt = pyplot()
    figure, axes = plt.subplots(1, len(names), figsize=(3.4 * len(names), 3), squeeze=False, layout="constrained")
    for axis, name in zip(axes.flat, names, strict=True):
        found = measured(records, name)
        for start, label in ((False, "from nothing"), (True, "from the one in the package")):
            mine = [one for one in made(records, name) if one["settings"]["start"] == start]
            if mine:
                axis.plot([one["rows"] for one in mine], [one["R2"] for one in mine], marker="o", ms=4, label=label)
        for one in found:
            if one["settings"].get("head"):
                axis.axhline(one["R2"], color="gray", ls=":", label="in the package")
        axis.set(title=name, xlabel="rows of drawn labels", ylabel="R2, test families", ylim=(0, 1))
        axis.grid(alpha=0.25)
        axis.legend(fontsize=7)
    figure.savefig(file, dpi=150)
    plt.close(figure)
