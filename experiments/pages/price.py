"""What docs/price.md says of frontiers, ratios of passes at equal price, and whether budgets are true."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pairmi.bench import report
from pairmi.bench.price_plots import draw_frontier, draw_reliability
from pairmi.spec import looks_at_pairs

Record = Mapping[str, Any]
REPEATS = 1000  # of the bootstrap
COMPARED = "Passes of a calibrated setting by those of others at its price:"
SHIPPED = ("sudoku", "protein")  # whose heads hold their calibrations


def is_ours(record: Record) -> bool:
    """Whether it is a calibrated setting."""
    return "charge=calibrated" in record["rule"]


def is_plain(record: Record) -> bool:
    """Whether it knows nothing of mutual information."""
    return not looks_at_pairs(record["rule"])


def is_knobs(record: Record) -> bool:
    """Whether it is `mi-bound` with pairwise charges."""
    return record["rule"].startswith("mi-bound") and not is_ours(record)


def hull(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The lower convex hull of (nats, passes), as far as it falls.

    What lies on it is at hand: drawing one of two settings for each sequence takes the mean of their passes, and loses at most the mean
    of their nats, for KL is convex.
    """
    kept: list[tuple[float, float]] = []
    for nats, passes in sorted(points):
        if kept and passes >= kept[-1][1]:
            continue
        while len(kept) > 1 and (kept[-1][1] - kept[-2][1]) * (nats - kept[-2][0]) >= (passes - kept[-2][1]) * (kept[-1][0] - kept[-2][0]):
            kept.pop()
        kept.append((nats, passes))
    return kept


def passes_at(points: Sequence[tuple[float, float]], nats: float) -> float:
    """The fewest passes of these settings, or of two by turns, that lose no more."""
    return float(np.interp(nats, *zip(*hull(points), strict=True)))


def ratio(one: Record, rivals: Sequence[Record]) -> tuple[float, float, float]:
    """Its passes by those of the rivals (and of sequential decoding) at its price, with a 95 % interval over sequences, paired."""
    records = [one, *rivals]
    each, passes = np.array([record["each"] for record in records]), [float(record["passes"]) for record in records]
    sequential = (0.0, float(one["rows"]))

    def found(nats: np.ndarray) -> float:
        return passes[0] / passes_at([sequential, *zip(nats[1:].tolist(), passes[1:], strict=True)], float(nats[0]))

    rng = np.random.default_rng(0)
    again = [found(each[:, rng.integers(each.shape[1], size=each.shape[1])].mean(1)) for _ in range(REPEATS)]
    low, high = np.quantile(again, (0.025, 0.975))
    return found(each.mean(1)), float(low), float(high)


def written(found: tuple[float, float, float]) -> str:
    """A ratio with its interval."""
    return f"{found[0]:.2f} [{found[1]:.2f}, {found[2]:.2f}]"


def compared(records: Sequence[Record]) -> list[dict[str, Any]]:
    """At the price of each calibrated setting: its passes by those of rules without MI, of uncalibrated `mi-bound`, of all others."""
    ours = [record for record in records if is_ours(record)]
    others = [record for record in records if not is_ours(record)]
    rivals: dict[str, Callable[[Record], bool]] = {"without MI": is_plain, "uncalibrated mi-bound": is_knobs, "all others": lambda _: True}
    return [
        {"rule": one["rule"], "nats": one["nats"], "passes": one["passes"], "nats a pass": one["nats"] / one["passes"]}
        | {name: written(ratio(one, [record for record in others if which(record)])) for name, which in rivals.items()}
        for one in ours
    ]


def beating(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Settings that take fewer passes than calibrated ones at their own price, by more than the interval; no dearer than ours all are."""
    ours = [record for record in records if is_ours(record)]
    dearest = max(record["nats"] for record in ours)
    found = [(record, ratio(record, ours)) for record in records if not is_ours(record) and record["nats"] <= dearest]
    return [{"rule": record["rule"], "ratio": written(value)} for record, value in found if value[2] < 1]


def chosen_knobs(records: Sequence[Record]) -> list[str]:
    """The uncalibrated settings of `mi-bound` that are on their own frontier."""
    knobs = [record for record in records if is_knobs(record)]
    if not knobs:
        return []
    on = hull([(0.0, float(knobs[0]["rows"])), *((record["nats"], record["passes"]) for record in knobs)])
    return [record["rule"] for record in knobs if (record["nats"], record["passes"]) in on]


def verdict(records: Sequence[Record]) -> str:
    """In words: the range of ratios, and whether anything beats the calibrated rule."""
    ours = [record for record in records if is_ours(record)]
    if not ours or not any(is_plain(record) for record in records):
        return ""
    ratios = [ratio(one, [record for record in records if is_plain(record)])[0] for one in ours]
    told = f"Passes of calibrated `mi-bound` by those of the best rule without MI at equal price: {min(ratios):.2f} to {max(ratios):.2f}. "
    above = beating(records)
    if not above:
        return told + "No setting of any rule that loses no more than our fastest beats it by more than its interval.\n\n"
    return told + "It is beaten by " + ", ".join(f"`{one['rule']}` (passes {one['ratio']} of ours)" for one in above) + ".\n\n"


def headline(title: str) -> str:
    """What a section is called."""
    return title[0].upper() + title[1:]


def section(name: str, title: str, model: str, wanted: Sequence[str], records: Sequence[Record], figures: Path, note: str = "") -> str:
    """The frontier of a scene: a picture, a table, and how calibrated settings compare."""
    records = sorted(records, key=lambda record: float(record["passes"]))
    draw_frontier(records, figures / f"price_{name}.png", title)
    rows = [record | {"95 %": f"[{record['interval'][0]:.3g}, {record['interval'][1]:.3g}]"} for record in records]
    missing = [rule for rule in wanted if rule not in {record["rule"] for record in records}]
    absent = f" Not measured: {', '.join(missing)}." if missing else ""
    probing = ("probe_rows",) if any(record["probe_rows"] for record in records) else ()
    spent = [float(record["probe_rows"]) for record in records if is_ours(record)]
    cost = (
        f"There is no head: a rule that looks at pairs probes them at each pass, {min(spent):.0f} to {max(spent):.0f} rows a sequence for "
        "calibrated `mi-bound`, which passes do not count. Where rows cost as much as passes, that is dearer than sequential decoding.\n\n"
        if probing and spent
        else ""
    )
    told = [commit for record in records for commit in record["provenance"]["commit"].split(", ")]
    commits = ", ".join(dict.fromkeys(commit[:7] for commit in told))
    return (
        f"### {headline(title)}\n\n{note}{records[0]['sequences']} sequences, `{model}`, bfloat16, seed {records[0]['seed']}, "
        f"commits {commits}; sequential decoding takes {records[0]['rows']:.3g} passes.{absent}\n\n![frontier](figures/price_{name}.png)\n\n"
        f"{verdict(records)}{cost}{COMPARED}\n\n"
        f"{report.table(compared(records), ('rule', 'nats', 'passes', 'nats a pass', 'without MI', 'uncalibrated mi-bound', 'all others'))}\n\n"
        f"{folded(report.table(rows, ('rule', 'passes', 'nats', '95 %', 'acceptance', *probing)))}\n"
    )


def folded(table: str) -> str:
    """A long table that is opened by who wants it."""
    return f"<details>\n<summary>all {len(table.splitlines()) - 2} settings</summary>\n\n{table}\n\n</details>"


def refolded(text: str) -> str:
    """A section that was printed before long tables were folded."""
    lines = text.splitlines()
    first = next((n for n, line in enumerate(lines) if line.startswith("| rule") and "acceptance" in line), None)
    if first is None or "<details>" in text:
        return text
    last = next((n for n in range(first, len(lines)) if not lines[n].startswith("|")), len(lines))
    return "\n".join([*lines[:first], *folded("\n".join(lines[first:last])).splitlines(), *lines[last:]]) + "\n"


def gained(name: str, knobs: Sequence[Record], ours: Sequence[Record]) -> list[dict[str, Any]]:
    """At the price of each setting with knobs: its passes, and the calibrated rule's by its own."""
    lines = []
    for one in knobs:
        value = ratio(one, ours)
        told = (1 / value[0], 1 / value[2], 1 / value[1])
        lines.append({"scene": name, "rule": one["rule"], "nats": one["nats"], "passes": one["passes"], "calibrated / this": written(told)})
    return lines


def gain_section(lines: Sequence[Record], sequences: str) -> str:
    """What calibration gains over the best knobs."""
    if not lines:
        return ""
    return (
        "## What calibration gains over (penalty, entropy_weight)\n\nThe settings of uncalibrated `mi-bound` on their own frontier below, "
        f"priced again with calibrated ones on other draws ({sequences}); passes of the calibrated rule by theirs at their price, below 1 "
        "where calibration gains (95 %, paired).\n\n"
        f"{report.table(lines, ('scene', 'rule', 'nats', 'passes', 'calibrated / this'))}\n\n"
    )


def short(checks: Mapping[str, Sequence[Record]], gains: Sequence[Record]) -> str:
    """Two lines for who reads nothing else."""
    told = []
    for name, some in checks.items():
        true = [one for one in some if abs(one["measured"] / one["budget"] - 1) <= 0.2]
        told.append(f"`{name}` {len(true)} of {len(some)} budgets{'' if name in SHIPPED else ' (not shipped)'}")
    lines = [f"* **Budgets are nats lost a pass**, measured mean within 20 %: {', '.join(told)}."] if told else []
    by_scene: dict[str, list[str]] = {}
    for one in gains:
        by_scene.setdefault(one["scene"], []).append(one["calibrated / this"].partition(" ")[0])
    if by_scene:
        ranges = ", ".join(f"{scene} {min(some)} to {max(some)}" for scene, some in by_scene.items())
        lines.append(f"* **Calibration** takes these shares of the passes of the best (penalty, entropy_weight) at its price: {ranges}.")
    return "".join(f"{line}\n" for line in lines)


def reliable(checks: Mapping[str, Sequence[Record]], levels: Mapping[str, Sequence[Record]], figures: Path) -> str:
    """Whether budgets are true, on draws that no calibration has seen."""
    if not checks:
        return ""
    draw_reliability(checks, figures / "price_reliability.png")
    rows = [
        {"model": name, "within 20 %": "yes" if abs(one["measured"] / one["budget"] - 1) <= 0.2 else "no", "charged": one["predicted"]}
        | dict(one)
        | {"worst": f"{100 * largest(one):.0f} %" if "each" in one else one["worst"], "sequences": one["sequences"]}
        | {"errors off": f"{(one['measured'] - one['budget']) / one['error']:+.1f}"}
        for name, some in checks.items()
        for one in some
    ]
    columns = ("model", "budget", "charged", "measured", "error", "within 20 %", "errors off", "worst", "passes", "sequences")
    return (
        "## Is a budget what a pass loses?\n\nCalibrated `mi-bound` on other draws than it was fitted on; `charged` is the sum of its "
        "charges, all in nats a pass; the error is one standard error over sequences, and `errors off` is how many of them lie between "
        "budget and measured; `worst` is the share of all losses that the worst hundredth of the sequences (at least one) has: where few "
        f"lose most, a check of this size cannot tell 20 % for sure.\n\n![reliability](figures/price_reliability.png)\n\n"
        f"{report.table(rows, columns)}\n\n{in_parts(checks)}{levelled(levels)}"
    )


def in_parts(checks: Mapping[str, Sequence[Record]]) -> str:
    """Checks that were not decided by a first lot of sequences, lot by lot."""
    found = [(name, one) for name, some in checks.items() for one in some if len(one.get("parts", ())) > 1]
    return "".join(
        f"`{name}` at {one['budget']:g} was drawn in parts: "
        + ", ".join(f"{lost:.3g} on {count}" for count, lost in one["parts"])
        + ".\n\n"
        for name, one in found
    )


def levelled(levels: Mapping[str, Sequence[Record]]) -> str:
    """What passes lose that may spend so much by their charges: what budgets are made true by."""
    rows = [
        {"model": name, "may spend": one["allowed"], "loses": one["measured"], "error": one["error"], "passes": one["passes"]}
        | {"sequences": len(one["each"])}
        for name, some in levels.items()
        for one in some
    ]
    if not rows:
        return ""
    return (
        "What charges may add up to at a budget is a curve through levels that were measured, nats a pass again. On `sudoku` it is no line: "
        "passes that may spend little lose far less than that.\n\n"
        f"{report.table(rows, tuple(rows[0]))}\n\n"
    )


def largest(one: Record) -> float:
    """The share of the losses that the worst hundredth of the sequences has."""
    each = np.sort(np.array(one["each"]))
    return float(each[-max(1, len(each) // 100) :].sum() / each.sum())
