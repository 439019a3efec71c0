"""The page that `coupling.py` makes of its measurements."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pairmi.bench import report
from pairmi.bench.ledger import Ledger
from pairmi.bench.stats import Interval, mean_interval, paired_difference, wilson

Record = Mapping[str, Any]
TOP = """# Drawing dependent positions together

Printed by `python experiments/coupling.py --page`. {where}

Mutual information says which positions must not be filled in one pass. The row that measures it says more: q(x_j | x_i = v), how every other position moves when i takes the symbol v. With that table the pair need not be avoided:
draw i, shift the marginal of j by log q(x_j | x_i = v) - log p(x_j), draw j. `draw=coupled` does so for the members of any rule's set, in the rule's order; `--verify` takes the shifted marginals as the draft's distribution, and stays exact.

* **Exact tables** (`draw=probed`): one more row for each drawn member. Several members are combined by minmax: for each symbol the strongest exclusion plus the strongest support.
* **Learnt tables** (`draw=coupled`): a small network on the hidden states of the pass, no more rows.

```python
import pairmi

model = pairmi.load("sudoku4")
print(pairmi.decode(model, 16 * ".", "top-k:k=2,draw=probed"))
```
"""
LIMITS = """## Limits

* Tables of pairs see nothing of an XOR: three bits whose parity is fixed still lose ln 2 when all are drawn together (`tests/test_coupling.py`).
* Learnt tables are for one model of one length and a small alphabet; for every other model take `draw=probed`.
* A price is a mean over the model's own sequences. It says what drawing at once loses against that model, not how good the model is.
"""


def gathered(records: Iterable[Record], *names: str) -> dict[tuple[Any, ...], dict[str, np.ndarray]]:
    """Measurements of all units side by side, by some of their settings."""
    parts: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for record in records:
        parts[tuple(record["settings"][name] for name in names)].append(record)
    values = ("nats", "passes", "rejections", "valid", "rows")
    return {
        key: {
            name: np.concatenate([np.array(r[name], float) for r in sorted(mine, key=lambda r: r["settings"]["first"])])
            for name in values
            if name in mine[0]
        }
        for key, mine in parts.items()
    }


def prices(records: list[Record]) -> str:
    """The price of each set rule by way of drawing."""
    found, lines = gathered(records, "sets", "draw"), []
    for sets in dict.fromkeys(key[0] for key in found):
        plain, coupled, exact = (found.get((sets, draw)) for draw in ("marginal", "coupled", "probed"))
        if plain is None:
            continue
        line = {
            "sets of": sets,
            "passes": float(plain["passes"].mean()),
            "sequences": len(plain["nats"]),
            "marginals": str(mean_interval(plain["nats"])),
        }
        if coupled is not None:
            line |= {
                "learnt tables": str(mean_interval(coupled["nats"])),
                "rejections": f"{plain['rejections'].mean():.2f}, {coupled['rejections'].mean():.2f}",
            }
        if exact is not None:
            count = len(exact["nats"])
            line |= {"exact tables": f"{mean_interval(exact['nats'])} ({count})"}
            if coupled is not None:
                gain = (plain["nats"][:count] - coupled["nats"][:count]).mean() / (plain["nats"][:count] - exact["nats"]).mean()
                line |= {"gain kept": f"{gain:.0%}"}
        lines.append(line)
    columns = ("sets of", "passes", "sequences", "marginals", "learnt tables", "exact tables", "gain kept", "rejections")
    return report.table(sorted(lines, key=lambda line: -line["passes"]), [c for c in columns if any(c in line for line in lines)])


def boards(records: list[Record]) -> str:
    """Validity and costs of decoding, with the difference in validity from sequential decoding on the same streams."""
    found, lines = gathered(records, "rule"), []
    reference = found.get(("sequential",))
    for (spec,), one in found.items():
        low, high = wilson(int(one["valid"].sum()), len(one["valid"]))
        line = {"rule": spec, "boards": len(one["valid"]), "valid": str(Interval(float(one["valid"].mean()), low, high))}
        line |= {"passes": str(mean_interval(one["passes"])), "rows": float(one["rows"].mean())}
        if reference is not None and spec != "sequential":
            count = min(len(one["valid"]), len(reference["valid"]))
            line["against sequential"] = str(paired_difference(one["valid"][:count], reference["valid"][:count]))
        lines.append(line)
    columns = ("rule", "boards", "valid", "against sequential", "passes", "rows")
    return report.table(lines, [c for c in columns if any(c in line for line in lines)])


def picture(records: list[Record], file: Path) -> None:
    """Nats over passes for each way of drawing."""
    found, plt = gathered(records, "sets", "draw"), report.pyplot()
    figure, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
    for draw, color, marker in (("marginal", "#D55E00", "o"), ("coupled", "#0072B2", "s"), ("probed", "#009E73", "^")):
        mine = sorted(
            (float(v["passes"].mean()), float(v["nats"].mean())) for (sets, way), v in found.items() if way == draw and "mi-bound" in sets
        )
        name = {"marginal": "marginals", "coupled": "learnt tables", "probed": "exact tables"}[draw]
        axis.plot([x for x, _ in mine], [y for _, y in mine], marker=marker, color=color, label=name)
    axis.set(
        xscale="log",
        yscale="log",
        xlabel="passes",
        ylabel="price (nats lost a board)",
        title="the same sets of mi-bound, drawn in three ways",
    )
    report.label_passes(axis)
    axis.grid(alpha=0.25)
    axis.legend(frameon=False)
    report.save(figure, file)


def idea(record: Record, file: Path) -> None:
    """A board, and how far each open cell moves when one of them is drawn: by exact and by learnt tables."""
    plt = report.pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
    for axis, name in zip(axes, ("exact", "learnt"), strict=True):
        image = axis.imshow(np.array(record[name]).reshape(9, 9), cmap="Blues", vmin=0, vmax=max(record["exact"]))
        for place, token in enumerate(record["canvas"]):
            drawn = place == record["position"]
            text = str(record["symbol"] + 1) if drawn else str(token + 1) if token < 9 else ""
            axis.text(
                place % 9,
                place // 9,
                text,
                ha="center",
                va="center",
                color="#D55E00" if drawn else "0.35",
                weight="bold" if drawn else None,
            )
        for line in (2.5, 5.5):
            axis.axhline(line, color="0.4", lw=1)
            axis.axvline(line, color="0.4", lw=1)
        axis.set(title=f"{name} tables", xticks=[], yticks=[])
    figure.colorbar(image, ax=axes, label="how far a marginal moves (total variation)", shrink=0.85)
    report.save(figure, file)


def current(records: Iterable[Record], tables: str) -> list[Record]:
    """Without what was measured with other learnt tables than these."""
    couplings = [(record, record["settings"].get("resolved", {}).get("coupling")) for record in records]
    return [record for record, coupling in couplings if not isinstance(coupling, str) or coupling == tables]


def page(ledger: Ledger, out: Path, tables: str) -> str:
    """All that there is for learnt tables of this fingerprint."""
    by: dict[str, list[Record]] = defaultdict(list)
    found = current(ledger.found.values(), tables)
    for record in found:
        by[record["settings"]["what"]].append(record)
    commits = sorted({record["provenance"]["commit"][:7] for record in found})
    some = found[0]["provenance"]
    told = ", ".join(f"{name} {some[name]}" for name in ("python", "torch") if name in some)
    parts = [TOP.format(where=f"Commits {', '.join(commits)}; {told}. Learnt tables {tables}. Intervals are 95 %.")]
    for record in by["picture"][-1:]:
        idea(record, out.parent / "figures" / "coupling_idea.png")
        parts.append(
            "![one drawn cell moves the others](figures/coupling_idea.png)\n\nThe most uncertain cell is drawn (orange), before any other pass: how far the marginals of the open cells move. Here the learnt tables see what shares a row, a column or a box, and miss most of what reaches a cell through others.\n"
        )
    of = {name: [r for r in by["price"] if r["settings"]["model"] == name] for name in ("sudoku", "protein")}
    if of["sudoku"]:
        about = "Nats lost a board against one by one in the rule's own order; rejections: expected in verified decoding, by marginals and by learnt tables. In brackets: boards with exact tables, on which the gain kept is taken."
        parts.append(f"## 9x9 Sudoku, unconditional: price\n\n{about}\n\n{prices(of['sudoku'])}\n")
    if len({record["settings"]["sets"] for record in of["sudoku"]}) > 1:
        picture(of["sudoku"], out.parent / "figures" / "coupling.png")
        parts.append("![price over passes](figures/coupling.png)\n")
    titles = {"plain": "Plain decoding", "verified": "Verified decoding", "solve": "Solving minimal puzzles, greedy"}
    parts += [f"## {title}\n\n{boards(by[what])}\n" for what, title in titles.items() if by[what]]
    for record in by["cost"]:
        parts.append(
            f"## Cost\n\nIn one decoding of {record['boards']:.0f} boards, {record['members']:.1f} members a pass, learnt tables take {record['coupling']:.2f} s beside {record['pass']:.2f} s of passes in bfloat16: {record['share']:.1%} (they take turns; one thread).\n"
        )
    if of["protein"]:
        parts.append(f"## Proteins of 72 residues, unconditional\n\n{prices(of['protein'])}\n")
    if by["worlds"]:
        lines = [
            {"world": r["settings"]["world"], "draw": "coupled" if r["settings"]["coupled"] else "marginal"}
            | {f"{how} <= {limit}": value for how in ("search", "rule") for limit, value in r[how].items()}
            for r in by["worlds"]
        ]
        about = "Fewest passes at a price of at most so many nats: `search` over all fixed schedules (exhaustive), `rule` = `mi-bound` with probed MI over 33 settings."
        parts.append(f"## Exact worlds\n\n{about}\n\n{report.table(lines, tuple(lines[0]))}\n")
    return "\n".join([*parts, LIMITS])
