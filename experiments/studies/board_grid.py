"""The settings of the published tables on 9x9 boards: three for each rule, so that none is luckier than another."""

TABLE_1 = (
    "sequential",
    "top-k:k=4",
    "top-k:k=7",
    "eb:budget=0.2",
    "eb:budget=0.5",
    "mi-guided:budget=0.3",
    "mi-guided:budget=0.6",
)  # the paper's

SOLVING = (
    *(f"eb:budget={budget}" for budget in (0.001, 0.003, 0.01)),
    *(f"threshold:threshold={threshold}" for threshold in (0.99, 0.995, 0.999)),
    *(f"factor:factor={factor}" for factor in (0.01, 0.05, 0.2)),
    *(f"klass:threshold={threshold}" for threshold in (0.9, 0.99, 0.999)),
    *(f"mi-guided:budget={budget}" for budget in (0.05, 0.1, 0.2)),
    *(f"mi-bound:budget={budget},entropy_weight=1" for budget in (0.003, 0.01, 0.03)),
    *(f"mi-bound:budget={budget},charge=calibrated" for budget in (0.002, 0.005, 0.01)),
    *(f"demask:budget={budget},confidence=0.99" for budget in (0.01, 0.03, 0.1)),
)

GENERATING = (
    *(f"eb:budget={budget}" for budget in (0.1, 0.2, 0.5)),
    *(f"mi-bound:budget={budget},entropy_weight=0.02,penalty={penalty}" for budget, penalty in ((0.06, 4), (0.06, 6), (0.1, 10))),
    *(f"mi-bound:budget={budget},charge=calibrated" for budget in (0.005, 0.01, 0.02)),
    *(f"mi-bound:budget=3,draw=coupled,defer={defer}" for defer in (0.003, 0.006, 0.01)),
)

DRAFTS = (
    *(f"eb:budget={budget}" for budget in (0.5, 1.0, 2.0)),
    *(f"mi-bound:budget={budget},entropy_weight={weight}" for budget, weight in ((0.5, 0.05), (1, 0.05), (1, 0.1))),
    *(f"mi-bound:budget=3,draw=coupled,defer=0.05,late={late}" for late in (0.1, 0.3, 0.6)),
)  # what is drafted under verification
