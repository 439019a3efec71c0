"""The page that `coupling.py` makes of its measurements."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pages import coupling_models as models
from pages.coupling_limits import LIMITS
from pairmi.bench import report
from pairmi.bench.ledger import Ledger
from pairmi.bench.stats import Interval, mean_interval, paired_difference, wilson
from pairmi.selectors.charge import Calibration
from pairmi.types import Charge

Record = Mapping[str, Any]
TOP = """# Drawing dependent positions together

Printed by `python experiments/coupling.py --page`. {where}

Mutual information says which positions must not be filled in one pass. The row that measures it says more: q(x_j | x_i = v), how every other position moves when i takes the symbol v. With that table the pair need not be avoided:
draw i, shift the marginal of j by log q(x_j | x_i = v) - log p(x_j), draw j. `draw=coupled` does so for the members of any rule's set, in the rule's order; `--verify` takes the shifted marginals as the draft's distribution, and stays exact.

* **Exact tables** (`draw=probed`): one more row for each drawn member. Several members are combined by minmax: for each symbol the strongest exclusion plus the strongest support.
* **Learnt tables** (`draw=coupled`): a small network on the hidden states of the pass, no more rows.
* **Doubt** (`draw=coupled,defer=NATS`): most of what learnt tables lose, they lose on one member in twenty (below). A second small network expects the loss of each member from what was drawn before it; members above the limit wait for a later pass. The decision never looks at the member's own symbol, so that verified decoding stays exact and the price is a mean over sequences as before.
* **The doubtful last** (`defer=NATS,late=NATS`): when all others of a set are drawn, those that were passed over follow, the least doubted first, until the doubts of the set add up to `late`. At the end of a verified draft a rejection wastes least.
* **Large alphabets** (`EmbeddedTables`): the shift of all symbols is one product with the model's own output embeddings; any length. Their weights are made by a command (below).

```python
import pairmi

model = pairmi.load("sudoku4")
print(pairmi.decode(model, 16 * ".", "top-k:k=2,draw=probed"))
```
"""
ORDER = (
    "What was asked",
    "Members in doubt wait: price",
    "Members in doubt wait: plain decoding",
    "Members in doubt wait: verified decoding",
    "Members in doubt wait: solving minimal puzzles, greedy",
    "9x9 Sudoku, unconditional: price",
    "Plain decoding",
    "Verified decoding",
    "Solving minimal puzzles, greedy",
    "How limits were chosen",
    "Cost",
    "Time",
    "What the tables know of their own loss",
    "Charges for what is left",
    "Mutual information from the tables",
    "Over the number of walks",
    "Other models",
    "Large alphabets",
    "Words in text",
    "Exact worlds",
)
OTHERS = ("embedded price", "embedded cost", "embedded words")  # of tables that other models have: the newest count
REFERENCES = ("sequential", "eb:budget=0.1", "mi-bound:budget=0.06,entropy_weight=0.02,penalty=4")


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
        one = plain or coupled
        for (name, draw), mine in found.items():
            if name == sets and "defer" in draw:
                lines.append(
                    {"sets of": f"{sets},{draw.partition(',')[2]}", "passes": float(mine["passes"].mean()), "sequences": len(mine["nats"])}
                    | {"learnt tables": str(mean_interval(mine["nats"])), "rejections": f"{mine['rejections'].mean():.2f}"}
                )
        if one is None:
            continue
        line = {"sets of": sets, "passes": float(one["passes"].mean()), "sequences": len(one["nats"])}
        if plain is not None:
            line["marginals"] = str(mean_interval(plain["nats"]))
        if coupled is not None:
            before = "" if plain is None else f"{plain['rejections'].mean():.2f}, "
            line |= {"learnt tables": str(mean_interval(coupled["nats"])), "rejections": f"{before}{coupled['rejections'].mean():.2f}"}
        if exact is not None and plain is not None:
            count = len(exact["nats"])
            line |= {"exact tables": f"{mean_interval(exact['nats'])} ({count})"}
            if coupled is not None:
                both = min(count, len(coupled["nats"]))
                base = plain["nats"][:both]
                gain = (base - coupled["nats"][:both]).mean() / (base - exact["nats"][:both]).mean()
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
        careful = found.get(("eb:budget=0.1",))
        if careful is not None and spec not in ("sequential", "eb:budget=0.1"):
            count = min(len(one["valid"]), len(careful["valid"]))
            line["against eb 0.1"] = str(paired_difference(one["valid"][:count], careful["valid"][:count]))
        lines.append(line)
    columns = ("rule", "boards", "valid", "against sequential", "against eb 0.1", "passes", "rows")
    return report.table(lines, [c for c in columns if any(c in line for line in lines)])


def picture(records: list[Record], file: Path) -> None:
    """Nats over passes for each way of drawing."""
    found, plt = gathered(records, "sets", "draw"), report.pyplot()
    figure, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
    names = {"marginal": "marginals", "coupled": "learnt tables", "defer": "learnt tables that defer", "probed": "exact tables"}
    for (draw, name), color, marker in zip(names.items(), ("#D55E00", "#0072B2", "#CC79A7", "#009E73"), "osD^", strict=True):
        mine = sorted(
            (float(v["passes"].mean()), float(v["nats"].mean()))
            for (sets, way), v in found.items()
            if (way == draw or draw in way.partition(",")[2]) and "mi-bound" in sets
        )
        if not mine:
            continue
        axis.plot([x for x, _ in mine], [y for _, y in mine], marker=marker, color=color, label=name)
    axis.set(
        xscale="log",
        yscale="log",
        xlabel="passes",
        ylabel="price (nats lost a board)",
        title="sets of mi-bound, drawn in several ways",
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


def current(records: Iterable[Record], tables: str, charge: Charge | None, weights: str) -> list[Record]:
    """Without what was measured with other weights or learnt tables than these, or with another calibration of what they leave."""

    def other(told: Mapping[str, Any]) -> bool:
        own = told.get("model", "sudoku") == "sudoku" and told["what"] not in OTHERS
        return own and told.get("weights", told.get("backbone", weights)) != weights

    records = [record for record in records if not other(record["settings"])]
    couplings = [(record, (record["settings"].get("resolved") or {}).get("coupling")) for record in records]
    couplings = [(record, coupling.get("tables") if isinstance(coupling, dict) else coupling) for record, coupling in couplings]
    couplings = [(record, coupling if isinstance(coupling, str) else None) for record, coupling in couplings]
    newest = {
        record["settings"].get("weights"): coupling for record, coupling in couplings if coupling and record["settings"]["what"] in OTHERS
    }
    allowed = {tables, None, *newest.values()}
    kept = [record for record, coupling in couplings if coupling in allowed]
    kept = [record for record in kept if record["settings"].get("tables", tables) == tables]
    bias = charge.about()["bias"] if isinstance(charge, Calibration) else None

    def charged(record: Record) -> bool:
        used = (record["settings"].get("resolved", {}).get("rule") or {}).get("charge")
        return used is None or used.get("bias") == bias

    return [record for record in kept if charged(record)]


def sections(text: str) -> dict[str, str]:
    """The parts of a page by their titles; what stands above the first has none."""
    first, *rest = text.split("\n## ")
    return {"": first} | {part.partition("\n")[0]: f"## {part.rstrip()}\n" for part in rest}


def page(ledger: Ledger, out: Path, tables: str, charge: Charge | None, weights: str) -> str:
    """All that there is for these weights and learnt tables; sections without records stay as they were printed."""
    by: dict[str, list[Record]] = defaultdict(list)
    found = current(ledger.found.values(), tables, charge, weights)
    for record in found:
        by[record["settings"]["what"]].append(record)
    before = sections(out.read_text()) if out.is_file() else {"": ""}
    new = {one.partition("\n")[0].removeprefix("## "): one for one in made(by, out)}
    kept = [title for title in ORDER if title not in new and title in before]
    commits = sorted({record["provenance"]["commit"][:7] for record in found})
    some = found[0]["provenance"]
    told = ", ".join(f"{name} {some[name]}" for name in ("python", "torch") if name in some)
    where = f"Commits {', '.join(commits)}; {told}. Weights of `sudoku` {weights}, learnt tables {tables}. Intervals are 95 %."
    where += f" Kept as printed before, their records are not in the repository: {', '.join(kept)}." if kept else ""
    parts = [TOP.format(where=where), *pictures(by, out, before[""])]
    parts += [new[title] if title in new else before[title] for title in ORDER if title in new or title in before]
    return "\n".join([*parts, LIMITS])


def pictures(by: Mapping[str, list[Record]], out: Path, before: str) -> list[str]:
    """The idea in two pictures; those without records stay."""
    parts, old = [], before.partition("![one drawn cell")
    for record in by["picture"][-1:]:
        idea(record, out.parent / "figures" / "coupling_idea.png")
        parts.append(
            "![one drawn cell moves the others](figures/coupling_idea.png)\n\nThe most uncertain cell is drawn (orange), before any other pass: how far the marginals of the open cells move. Here the learnt tables see what shares a row, a column or a box, and miss most of what reaches a cell through others.\n"
        )
    parts = parts or [(old[1] + old[2].partition("![a masked word]")[0]).strip() + "\n"]
    word = models.word(by["word"], out.parent / "figures")
    return [*parts, *(word or ["".join(before.partition("![a masked word]")[1:]).strip() + "\n"])]


def made(by: Mapping[str, list[Record]], out: Path) -> list[str]:
    """The sections of which there are records."""
    parts = models.targets(by, gathered)
    priced = [r for r in by["price"] if r["settings"]["model"] == "sudoku"]
    late = [r for r in priced if "defer" in r["settings"]["draw"] or r["settings"]["sets"] in REFERENCES]
    if any("defer" in r["settings"]["draw"] for r in late):
        about = "Nats lost a board against one by one in the rule's own order; rejections: expected in verified decoding."
        parts.append(f"## Members in doubt wait: price\n\n{about}\n\n{prices(late)}\n")
    if any(r["settings"]["draw"] == "coupled" for r in priced):
        about = "Nats lost a board against one by one in the rule's own order; rejections: expected in verified decoding, by marginals and by learnt tables. In brackets: boards with exact tables, on which the gain kept is taken."
        parts.append(f"## 9x9 Sudoku, unconditional: price\n\n{about}\n\n{prices(priced)}\n")
        picture(priced, out.parent / "figures" / "coupling.png")
        parts[-1] += "\n![price over passes](figures/coupling.png)\n"
    titles = {"plain": "Plain decoding", "verified": "Verified decoding", "solve": "Solving minimal puzzles, greedy"}
    for what, title in titles.items():
        late = [r for r in by[what] if "defer" in r["settings"]["rule"] or r["settings"]["rule"] in REFERENCES]
        if any("defer" in r["settings"]["rule"] for r in late):
            alone = not any(r["settings"]["rule"] == "sequential" for r in late)
            about = "Sequential decoding on the same streams was not measured again; see the table of all rules below.\n\n" if alone else ""
            parts.append(f"## Members in doubt wait: {title[0].lower()}{title[1:]}\n\n{about}{boards(late)}\n")
        if any(r["settings"]["rule"].endswith("draw=coupled") for r in by[what]):
            parts.append(f"## {title}\n\n{boards(by[what])}\n")
    if by["cost"]:
        about = "In a decoding of {boards:.0f} boards by {rule}, {members:.1f} members a pass, learnt tables take {coupling:.2f} s beside {pass:.2f} s of passes in bfloat16: {share:.1%}."
        lines = [
            about.format(rule=f"`{record['settings']['rule']}`", **{k: v for k, v in record.items() if k != "settings"})
            for record in by["cost"]
        ]
        parts.append(
            "## Cost\n\nThey take turns; one thread; three decodings, after one that warms up.\n\n"
            + "".join(f"* {line}\n" for line in lines)
        )
    parts += [
        *models.speed(by["speed"]),
        *models.doubt(by["doubt"]),
        *models.budgets(by["budgets"]),
        *models.fidelity(by["mi"], by["readings"]),
    ]
    parts += models.sweep(by["sweep plain"], by["sweep verified"], gathered)
    parts += models.embedded(by["embedded price"], by["embedded"], by["embedded cost"], by["embedded words"])
    parts += [*models.curve(by["curve"]), *models.others(by["others"]), *models.words(by["words"])]
    if by["worlds"]:
        lines = [
            {"world": r["settings"]["world"], "draw": "coupled" if r["settings"]["coupled"] else "marginal"}
            | {f"{how} <= {limit}": value for how in ("search", "rule") for limit, value in r[how].items()}
            for r in by["worlds"]
        ]
        about = "Fewest passes at a price of at most so many nats: `search` over all fixed schedules (exhaustive), `rule` = `mi-bound` with probed MI over 33 settings."
        parts.append(f"## Exact worlds\n\n{about}\n\n{report.table(lines, tuple(lines[0]))}\n")
    return parts
