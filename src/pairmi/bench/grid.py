"""Which settings sweep each rule."""

from collections.abc import Sequence

from pairmi.selectors.catalogue import CATALOGUE

_BUDGETS = (0.0, 0.05, 0.1, 0.2, 0.5, 0.7, 1.0, 1.4, 2.0)
_GRID: dict[str, Sequence[str]] = {
    "sequential": ("by=confidence", "by=margin", "by=entropy", "by=random"),
    "top-k": tuple(f"k={k},by={by}" for by in ("confidence", "margin", "entropy", "random") for k in (2, 4, 7)),
    "eb": tuple(f"budget={b},by={by}" for by in ("entropy", "confidence", "margin") for b in _BUDGETS),
    "threshold": tuple(f"threshold={t}" for t in (0.4, 0.5, 0.7, 0.9, 0.99, 0.999)),
    "factor": tuple(f"factor={f}" for f in (0.01, 0.1, 0.5, 1.0, 1.5, 2.0)),
    "klass": tuple(f"threshold={t},drift={d}" for t in (0.5, 0.9) for d in (0.01, 0.1)),
    "maskgit": tuple(f"steps={s},noise={n}" for n in (0, 1) for s in (4, 8, 12)),
    "mi-guided": tuple(f"budget={b},penalty={p}" for p in (1, 4) for b in _BUDGETS),
    "mi-bound": tuple(
        f"budget={b},order={o}" for o in ("lowest-entropy", "information", "certain-information", "highest-entropy") for b in _BUDGETS
    ),
    "independent-set": tuple(f"threshold={t},by={by}" for by in ("confidence", "information") for t in (0, 0.02, 0.1, 0.2)),
    "demask": tuple(f"budget={b}" for b in _BUDGETS),
}


def settings(rule: str) -> list[str]:
    """The specifications that sweep one rule; a rule without a grid has its defaults."""
    return [f"{rule}:{options}" for options in _GRID[rule]] if rule in _GRID else [rule]


def all_settings() -> list[str]:
    """The whole catalogue, swept."""
    return [spec for rule in CATALOGUE for spec in settings(rule)]
