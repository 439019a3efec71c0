"""The settings of every rule on proteins."""

from collections.abc import Sequence

from pairmi.bench.protein import TABLE_2
from pairmi.selectors.catalogue import CATALOGUE

BUDGETS = (2, 4, 8, 12, 16, 24, 32)  # nats: a residue of which nothing is known has almost 3
GRID: dict[str, Sequence[str]] = {
    "sequential": ("by=random",),
    "top-k": tuple(f"k={k},by={by}" for by in ("confidence", "random") for k in (2, 3, 5, 6, 8)),
    "eb": tuple(f"budget={budget}" for budget in BUDGETS),
    "threshold": tuple(f"threshold={t}" for t in (0.1, 0.15, 0.2, 0.3, 0.5)),
    "factor": tuple(f"factor={f}" for f in (1, 2, 4, 6, 8)),
    "klass": tuple(f"threshold={t},drift={d}" for t in (0.2, 0.5) for d in (0.01, 0.05)),
    "maskgit": tuple(f"steps={s},noise={n}" for n in (0, 1) for s in (6, 10, 15, 25)),
    "mi-guided": tuple(f"budget={budget},penalty={p}" for p in (1, 4) for budget in BUDGETS[2:]),
    "mi-bound": tuple(f"budget={b},order={o}" for o in ("lowest-entropy", "information") for b in (0.05, 0.1, 0.2, 0.5, 1, 2)),
    "demask": tuple(f"budget={b}" for b in (0.1, 0.5, 2)),
    "independent-set": tuple(f"threshold={t}" for t in (0.005, 0.01, 0.02, 0.05)),
}


def all_settings() -> list[str]:
    """The rows of Table 2, then the grid of every rule; a rule without a grid has its defaults."""
    grid = [f"{rule}:{options}" if options else rule for rule in CATALOGUE for options in GRID.get(rule, ("",))]
    return list(dict.fromkeys((*TABLE_2, *grid)))
