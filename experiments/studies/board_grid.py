"""The settings of the published tables on 9x9 boards."""

from collections.abc import Sequence

from pairmi.bench.grid import settings
from pairmi.selectors.catalogue import CATALOGUE

TABLE_1 = (
    "sequential",
    "top-k:k=4",
    "top-k:k=7",
    "eb:budget=0.2",
    "eb:budget=0.5",
    "mi-guided:budget=0.3",
    "mi-guided:budget=0.6",
)  # the paper's

# A trained model is unsure where an exact world is not: on 9x9 boards the useful budgets are smaller, and belief has its price.
_BOARDS: dict[str, Sequence[str]] = {
    "sequential": ("",),
    "top-k": tuple(f"k={k}" for k in (2, 4, 7)),
    "eb": tuple(f"budget={b}" for b in (0.01, 0.05, 0.1, 0.2, 0.5)),
    "threshold": tuple(f"threshold={t}" for t in (0.7, 0.9, 0.98, 0.995, 0.999)),
    "factor": tuple(f"factor={f}" for f in (0.01, 0.05, 0.2, 1.0)),
    "klass": tuple(f"threshold=0.9,drift={d},history=1" for d in (0.01, 0.1)),
    "maskgit": tuple(f"steps={s},noise=0" for s in (12, 24)),
    "mi-guided": tuple(f"budget={b}" for b in (0.01, 0.02, 0.03, 0.1, 0.3, 0.6)),
    "mi-bound": (
        *(f"budget={b},entropy_weight={f}" for f in (0.1, 0.3) for b in (0.01, 0.03, 0.1, 0.3)),
        *(f"budget={b},entropy_weight=1" for b in (0.03, 0.1)),
        *(f"budget={b},entropy_weight=0.3,penalty=4" for b in (0.1, 0.3)),
        *(f"budget={b},entropy_weight=0.02,penalty=4" for b in (0.03, 0.06, 0.1)),
        *(f"budget={b},entropy_weight=0.05,penalty=4" for b in (0.06, 0.1)),
        *(f"budget={b},penalty=4" for b in (0.005, 0.01, 0.02, 0.05, 0.1, 0.3)),
        *(f"budget={b},penalty=8" for b in (0.01, 0.02, 0.05, 0.1, 0.2)),
        "budget=0.1",
    ),
    "independent-set": tuple(f"threshold={t}" for t in (0.001, 0.01, 0.03)),
}


def board_settings() -> list[str]:
    """The specifications that make the frontiers on 9x9 boards; a rule without a grid of its own has that of the exact worlds."""
    return [spec for rule in CATALOGUE for spec in ([f"{rule}:{o}".rstrip(":") for o in _BOARDS.get(rule, ())] or settings(rule))]
