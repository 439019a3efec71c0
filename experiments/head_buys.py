"""What a better estimate of MI buys: validity over passes of one rule from the empty board, by exact MI and by heads. Writes docs/head-buys.md.

    python experiments/head_buys.py [--head FILE ...] [--former FILE] [--probed 16] [--boards 304] [--page]

Exact MI is probed in every pass, thousands of rows a board, hence fewer boards at one budget. --former is a head of weights before these,
taken as it is. Units of 8 boards are kept in --records, so that an interrupted run goes on where it stopped; --page writes what there is.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from pairmi.backbones.identity import identify
from pairmi.bench import report
from pairmi.bench.ledger import Ledger, depends_on
from pairmi.bench.stats import resamples, wilson
from pairmi.commit import Sampling
from pairmi.decoding import decode
from pairmi.loading import load, with_head
from pairmi.model import Model
from pairmi.provenance import provenance
from pairmi.spec import rule
from studies.former import taken_over

UNIT = 8  # boards
BUDGETS = (0.1, 0.2, 0.05)
RULE = "mi-bound:{mi}budget={budget},entropy_weight=0.02,penalty=10"
EXACT = "exact MI, probed"
PROBED = BUDGETS[:1]  # by exact MI
AT = (22, 24, 26, 30)  # passes that sources are compared at, and those that exact MI takes
Record = Mapping[str, Any]


def made(model: Model, ledger: Ledger, source: str, budget: float, first: int, precision: str) -> Record:
    """A unit of boards."""
    spec = RULE.format(mi="mi=probe," if source == EXACT else "", budget=budget)
    key = {"what": "buys", "source": source, "budget": budget, "first": first, "precision": precision} | depends_on(model, spec)

    def measured() -> Record:
        part, empty = list(range(first, first + UNIT)), torch.full((81,), model.vocab.size)
        out = decode(model, [empty] * UNIT, rule(spec, model), Sampling(), index=part, batch_size=UNIT)
        valid = [int(model.task.conflict(one.tokens) is None) for one in out]
        return {"valid": valid, "passes": [one.passes for one in out], "probe_rows": [one.probe_rows for one in out]}

    return ledger.measured(key, measured)


def together(records: Sequence[Record]) -> dict[str, np.ndarray]:
    """Units as one."""
    ordered = sorted(records, key=lambda record: int(record["settings"]["first"]))
    return {name: np.array([value for record in ordered for value in record[name]], float) for name in ("valid", "passes", "probe_rows")}


def at_passes(settings: Sequence[Mapping[str, np.ndarray]], passes: float) -> str:
    """Validity between the two settings of a source that take more and fewer passes, with its 95 % bootstrap interval."""

    def between(picks: Sequence[np.ndarray]) -> float:
        points = sorted((one["passes"][rows].mean(), one["valid"][rows].mean()) for one, rows in zip(settings, picks, strict=True))
        return float(np.interp(passes, *zip(*points, strict=True)))

    means = [one["passes"].mean() for one in settings]
    if not min(means) <= passes <= max(means):
        return ""
    drawn = [resamples(len(one["valid"]), 1000, number) for number, one in enumerate(settings)]
    low, high = np.quantile([between(picks) for picks in zip(*drawn, strict=True)], (0.025, 0.975))
    return f"{between([np.arange(len(one['valid'])) for one in settings]):.3f} [{low:.3f}, {high:.3f}]"


def page(ledger: Ledger, weights: str, precision: str) -> str:
    """What the records hold of these weights."""
    found: dict[str, dict[float, list[Record]]] = {}
    for record in ledger.found.values():
        told = record["settings"]
        if told["weights"] == weights and told["precision"] == precision:
            found.setdefault(told["source"], {}).setdefault(told["budget"], []).append(record)
    made_of = {source: {budget: together(some) for budget, some in sorted(budgets.items())} for source, budgets in found.items()}
    lines, equal, at = [], [], {*AT, *(float(one["passes"].mean()) for one in made_of.get(EXACT, {}).values())}
    for source, settings in made_of.items():
        for budget, one in settings.items():
            low, high = wilson(int(one["valid"].sum()), len(one["valid"]))
            lines.append({"MI": source, "budget": budget, "boards": len(one["valid"]), "valid": f"{one['valid'].mean():.3f} [{low:.3f}, {high:.3f}]",
                          "passes": one["passes"].mean(), "probe rows": one["probe_rows"].mean()})  # fmt: skip
        equal.append(
            {"MI": source} | {f"valid at {passes:.4g} passes": at_passes(list(settings.values()), passes) for passes in sorted(at)}
        )
    about = ", ".join(f"{key} {value}" for key, value in provenance().items())
    return f"""# What a better head buys

Printed by `python experiments/head_buys.py` ({about}; `sudoku`, weights {weights}, matrix products in {precision}). Boards from the empty one by
`{RULE.format(mi="", budget="B")}`, the same draws for all; only where the rule's MI comes from differs: probed exactly in every pass (thousands of rows a board), the head in
the package, or another; one that is called former learnt from the weights before these, and is taken as it is. How well each knows MI: [head.md](head.md).

{report.table(lines, tuple(lines[0]))}

At equal passes, between the two nearest settings, with 95 % bootstrap intervals; empty where a source has none on both sides:

{report.table(equal, tuple(equal[0]))}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--head", nargs="*", type=Path, default=[], help="others than the one in the package")
    parser.add_argument("--former", type=Path, help="a head that other weights of this shape had")
    parser.add_argument("--probed", type=int, default=16, help="boards by exact MI")
    parser.add_argument("--boards", type=int, default=304, help="by each head")
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page")
    parser.add_argument("--precision", default="bfloat16", choices=("float32", "bfloat16"), help="of the matrix products")
    parser.add_argument("--records", type=Path, default=Path("experiments/records/head-buys.jsonl"))
    parser.add_argument("--out", type=Path, default=Path("docs/head-buys.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    ledger, own = Ledger(options.records), load("sudoku", precision=options.precision)
    former = [taken_over(options.former, own, Path("runs/former"))] if options.former else []
    models = {"sudoku-head": own} | {file.stem: with_head(own, file) for file in (*options.head, *former)}
    work = [(source, options.boards, BUDGETS) for source in models] + [(EXACT, options.probed, PROBED)]
    for source, count, budgets in [] if options.page else work:
        for budget in budgets:
            for first in tqdm(range(0, count, UNIT), desc=f"{source}, {budget}"):
                made(models.get(source, own), ledger, source, budget, first, options.precision)
    options.out.write_text(page(ledger, identify(own), options.precision))
    print(options.out.read_text())


if __name__ == "__main__":
    main()
