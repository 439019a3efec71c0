"""The parts of docs/coupling.md beyond prices and validity on Sudoku; what was not measured is left out."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pairmi.bench import report
from pairmi.bench.stats import Interval, mean_interval, paired_difference, wilson

Record = Mapping[str, Any]
WAYS = {"marginal": "marginals", "sum": "sum of shifts", "probed": "minmax"}


def others(records: Sequence[Record]) -> list[str]:
    """The price of exact tables on other models."""
    parts: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        parts[record["settings"]["model"], record["settings"]["sets"]].append(record)
    lines = []
    for (model, sets), mine in sorted(parts.items()):
        found = {name: np.concatenate([np.array(r[name]) for r in mine]) for name in (*WAYS, "passes", "unknown")}
        line = {"model": model, "sets of": sets, "sequences": len(found["passes"]), "unknown": float(found["unknown"].mean())}
        line |= {"passes": float(found["passes"].mean())} | {label: str(mean_interval(found[name])) for name, label in WAYS.items()}
        lines.append(line | {"minmax explains": f"{1 - found['probed'].sum() / found['marginal'].sum():.0%}"})
    about = (
        "`python experiments/coupling_models.py`: nats lost a sequence, exact tables (one more row a member), the most confident first. Proteins and "
        "antibodies (bfloat16) from nothing, ProteinMPNN on 8 structures, albert-zh (21,128 symbols) on half-masked treebank sentences."
    )
    return [f"## Other models\n\n{about}\n\n{report.table(lines, tuple(lines[0]))}\n"] if lines else []


def embedded(priced: Sequence[Record], trained: Sequence[Record], costs: Sequence[Record], drawn: Sequence[Record]) -> list[str]:
    """Learnt tables through embeddings, beside marginals and exact tables on the same sets."""
    parts: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in priced:
        parts[record["settings"]["model"], record["settings"]["sets"]].append(record)
    lines = []
    for (model, sets), mine in parts.items():
        found = {name: np.concatenate([np.array(r[name]) for r in mine]) for name in (*WAYS, "learnt", "passes")}
        line = {"model": model, "sets of": sets, "sequences": len(found["passes"]), "passes": float(found["passes"].mean())}
        shown = {"marginal": "marginals", "learnt": "learnt tables", "probed": "exact tables (minmax)"}
        line |= {label: str(mean_interval(found[name])) for name, label in shown.items()}
        line["difference"] = str(paired_difference(found["learnt"], found["marginal"]))
        gain = found["marginal"].sum() - found["probed"].sum()
        lines.append(line | {"gain kept": f"{(found['marginal'].sum() - found['learnt'].sum()) / gain:.0%}"})
    if not lines:
        return []
    about = "`python experiments/coupling_tables.py MODEL`, then `python experiments/coupling_models.py --only MODEL --tables FILE`: tables that read the model's own embeddings (`EmbeddedTables`), nats lost a sequence, the most confident first. albert-zh (21,123 symbols): half-masked treebank sentences; it learnt from the other sentences. protein: 72 residues of which nothing is known. Difference: learnt less marginals, paired."
    notes = [
        f"{r['settings']['model']}: {r['settings']['training']['lots']} lots of sets from {r['settings']['sequences']} sequences, {r['settings']['steps']} steps, explain {r['log'][-1]['explained']:.0%} of KL(conditional || marginal) on held-out sequences (over the likeliest symbols, all others together)."
        for r in trained
    ]
    notes += [
        f"In a decoding of {r['boards']:.0f} half-masked sentences of 26 letters by `{r['settings']['rule']}`, {r['members']:.1f} members a pass, they take {r['coupling']:.2f} s beside {r['pass']:.2f} s of passes: {r['share']:.1%}."
        for r in costs
    ]
    text = f"## Large alphabets\n\n{about}\n\n{report.table(lines, tuple(lines[0]))}\n\n" + "".join(f"* {note}\n" for note in notes)
    shown = word_lines(drawn)
    same = "\nWords: hidden two-letter words, all letters in one pass, as in the next section.\n\n"
    return [text + (f"{same}{report.table(shown, tuple(shown[0]))}\n" if shown else "")]


def sweep(plain: Sequence[Record], verified: Sequence[Record], gathered: "Gathered") -> list[str]:
    """What limits were chosen by."""
    lines = []
    for way, records in (("plain", plain), ("verified", verified)):
        for (spec,), one in gathered(records, "rule").items():
            line = {"decoding": way, "rule": spec, "boards": len(one["valid"]), "valid": float(one["valid"].mean())}
            lines.append(line | {"passes": str(mean_interval(one["passes"])), "rows": float(one["rows"].mean())})
    about = "`python experiments/coupling_sweep.py`: settings on other draws than those that are reported. The limits were chosen on earlier weights; this is how they look on these."
    return [f"## How limits were chosen\n\n{about}\n\n{report.table(lines, tuple(lines[0]))}\n"] if lines else []


def word_lines(records: Sequence[Record]) -> list[dict[str, Any]]:
    """By the number of hidden words and the rule."""
    parts: dict[tuple[int, str], list[Record]] = defaultdict(list)
    for record in records:
        parts[record["settings"]["hidden"], record["settings"]["rule"]].append(record)
    lines = []
    for (hidden, rule), mine in parts.items():
        line = {"hidden words": f"at most {hidden}", "rule": rule, "pairs": sum(len(one) for r in mine for one in r["known"])}
        line["passes"] = float(np.mean([n for r in mine for n in r["passes"]]))
        for name, label in (("known", "in the lexicon"), ("right", "the hidden word")):
            line[label] = _share([r[name] for r in mine])
        lines.append(line)
    return lines


def words(records: Sequence[Record]) -> list[str]:
    """The share of drawn pairs that are words; intervals over sentences."""
    lines = word_lines(records)
    if not lines:
        return []
    count, size = records[0]["settings"]["sentences"], records[0]["lexicon"]
    about = (
        f"albert-zh draws hidden two-letter words of {count} treebank sentences, three times; the share of drawn pairs that are among the {size} "
        "two-letter words of the treebank's development part. Intervals: bootstrap over sentences. With one hidden word exact tables are "
        "sequential decoding itself, in one pass and one more row; with several, all letters are drawn in one pass."
    )
    return [f"## Words in text\n\n{about}\n\n{report.table(lines, tuple(lines[0]))}\n"]


def _share(draws: Sequence[Sequence[Sequence[bool]]]) -> str:
    """Of all pairs, with an interval over sentences."""
    right = np.array([[sum(one) for one in mine] for mine in draws]).sum(0)
    total = np.array([[len(one) for one in mine] for mine in draws]).sum(0)
    some = np.random.default_rng(0).integers(len(right), size=(2000, len(right)))
    low, high = np.quantile(right[some].sum(1) / total[some].sum(1), (0.025, 0.975))
    return f"{right.sum() / total.sum():.3f} [{low:.3f}, {high:.3f}]"


def word(records: Sequence[Record], figures: Path) -> list[str]:
    """The picture of one masked word."""
    if not records:
        return []
    import matplotlib
    from matplotlib import font_manager

    for file in font_manager.findSystemFonts():
        if "wqy" in file or "CJK" in file:
            font_manager.fontManager.addfont(file)
    matplotlib.rcParams["font.sans-serif"] = ["WenQuanYi Zen Hei", "Noto Sans CJK SC", "DejaVu Sans"]
    record, plt = records[-1], report.pyplot()
    figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained", sharex=True)
    letter = record["letter"]
    titles = {"first": "first letter", "second": "second letter, by itself", "after": f"second letter, {letter} drawn"}
    for axis, (name, title) in zip(axes, titles.items(), strict=True):
        letters, chances = zip(*record[name], strict=True)
        marked = letter if name == "first" else record["after"][0][0]
        axis.barh(range(len(letters)), chances, color=["#D55E00" if one == marked else "#9ecae1" for one in letters])
        axis.set_yticks(range(len(letters)), letters, fontsize=13)
        axis.invert_yaxis()
        axis.set(title=title, xlabel="probability")
    figure.suptitle(record["text"])
    report.save(figure, figures / "coupling_word.png")
    about = (
        f"`albert-zh` on a sentence chosen for the picture, {record['text']}: when {letter} is drawn, {record['after'][0][0]} rises from "
        f"{dict(map(tuple, record['second'])).get(record['after'][0][0], 0):.2f} to {record['after'][0][1]:.2f} before any other pass."
    )
    return [f"![a masked word](figures/coupling_word.png)\n\n{about}\n"]


def speed(records: Sequence[Record]) -> list[str]:
    """Boards a second."""
    if not records:
        return []
    seconds = {spec: np.array(values) for spec, values in records[-1]["seconds"].items()}
    reference = seconds["sequential"]
    lines = [
        {"rule": spec, "boards a CPU second": float(1 / np.median(mine)), "times sequential": float(np.median(reference / mine))}
        for spec, mine in seconds.items()
    ]
    return [f"## Time\n\nOne thread, bfloat16, rules taking turns.\n\n{report.table(lines, tuple(lines[0]))}\n"]


Gathered = Callable[..., dict[tuple[Any, ...], dict[str, np.ndarray]]]


def targets(by: Mapping[str, list[Record]], gathered: Gathered) -> list[str]:
    """What issue and design ask of coupled drawing on Sudoku, and the rule that comes nearest."""
    plain, verified, lines = gathered(by["plain"], "rule"), gathered(by["verified"], "rule"), []
    prices = {f"{sets},draw={draw}": one for (sets, draw), one in gathered(by["price"], "sets", "draw").items()}
    few = {spec: one for (spec,), one in plain.items() if "draw=coupled" in spec and one["passes"].mean() <= 20}
    if few:
        spec = max(few, key=lambda name: few[name]["valid"].mean())
        one, reference = few[spec], plain.get(("sequential",))
        low, high = wilson(int(one["valid"].sum()), len(one["valid"]))
        reached = f"valid {Interval(float(one['valid'].mean()), low, high)} on {len(one['valid'])} boards"
        if reference is not None:
            count = min(len(reference["valid"]), len(one["valid"]))
            apart = paired_difference(one["valid"][:count], reference["valid"][:count])
            reached += f", against sequential {apart} on the same {count}"
        nats = f"{mean_interval(prices[spec]['nats'])} nats" if spec in prices else "price not measured"
        asked = "plain: sequential's validity and the price of eb 0.1 in <= 20 passes"
        lines.append({"asked": asked, "rule": spec, "reached": f"{reached}; {nats}; {one['passes'].mean():.1f} passes"})
    if verified:
        ranked = sorted(verified.items(), key=lambda item: (item[1]["rows"].mean() > 92, item[1]["passes"].mean()))
        (spec,), one = ranked[0]
        asked = "verified: <= 12 passes and <= 92 rows"
        lines.append({"asked": asked, "rule": spec, "reached": f"{one['passes'].mean():.2f} passes, {one['rows'].mean():.1f} rows"})
    for record in by["cost"]:
        lines.append({"asked": "coupling <= 10 % of a pass", "rule": record["settings"]["rule"], "reached": f"{record['share']:.1%}"})
    return [f"## What was asked\n\n{report.table(lines, tuple(lines[0]))}\n"] if lines else []


def doubt(records: Sequence[Record]) -> list[str]:
    """What the least doubted members lose."""
    if not records:
        return []
    record = records[-1]
    lines = [
        {"members": f"{share:.0%}", "lose, of all nats": f"{lost:.1%}", "at best": f"{least:.1%}", "limit (nats)": limit}
        for share, lost, least, limit in zip(*(record[name] for name in ("shares", "lost", "least", "limits")), strict=True)
    ]
    groups = "; ".join(f"{one['expected']:.3g} expected, {one['lost']:.3g} lost" for one in record["groups"])
    about = (
        f"`python experiments/coupling_doubt.py`: {record['settings']['members']} members of sets; judged on {record['members']} "
        f"others of sequences that neither tables nor doubt were trained on. The least doubted members first, and what they lose of all that is lost; at best: if the "
        f"loss itself were known. Nats a member in the least doubted 80 %, the next 15 % and the last 5 %: {groups}."
    )
    return [f"## What the tables know of their own loss\n\n{about}\n\n{report.table(lines, tuple(lines[0]))}\n"]


READINGS = "Other readings of the same tables on the same states: only symbols of some probability speak, or any monotone function of what they say is taken (isotonic, fitted on the other half of the grids)."


def budgets(records: Sequence[Record]) -> list[str]:
    """Whether a calibrated budget is what a pass loses after the shift."""
    lines = [
        {"budget": r["settings"]["budget"], "boards": r["settings"]["boards"], "charged": r["predicted"]}
        | {"lost a pass": f"{r['measured']:.3g} +- {r['error']:.2g}", "nats a board": r["nats"], "passes": r["passes"]}
        for r in records
    ]
    about = "`mi-bound:charge=calibrated,draw=coupled`: charges fitted to what is left after the shift (`python experiments/coupling_charges.py`), checked on other draws; nats a pass."
    return [f"## Charges for what is left\n\n{about}\n\n{report.table(lines, tuple(lines[0]))}\n"] if lines else []


def fidelity(records: Sequence[Record], read: Sequence[Record]) -> list[str]:
    """MI by formula from the tables beside the scalar head."""
    if not records:
        return []
    record = records[-1]
    lines = [
        {"states": group, "count": one["states"], "head: R2": one["r2"], "tables: R2": record["scores"]["tables"][group]["r2"]}
        for group, one in record["scores"]["head"].items()
        if one["mean"] > 1e-3
    ]
    costs = ", ".join(f"{name} {one['time_share']:.2f}" for name, one in record["costs"].items())
    about = f"Tables beside `mi=head` on the same states of unseen grids, against probed MI. Time over a pass (float32): {costs}; every symbol of every position speaks to every other one."
    text = f"## Mutual information from the tables\n\n{about}\n\n{report.table(lines, tuple(lines[0]))}\n"
    if read:
        text += f"\n{READINGS}\n\n{report.table(read[-1]['rows'], tuple(read[-1]['rows'][0]))}\n"
    return [text]


def curve(records: Sequence[Record]) -> list[str]:
    """What is explained over the walks."""
    lines = [
        {"walks": f"1/{r['settings']['share']}", "sets": r["sets"], "explained": r["explained"], "steps": r["settings"]["steps"]}
        for r in sorted(records, key=lambda r: -r["settings"]["share"])
    ]
    about = "`python experiments/coupling_curve.py`: the share of KL(conditional || marginal) of next members that fresh tables explain on held-out sequences, at equal steps."
    return [f"## Over the number of walks\n\n{about}\n\n{report.table(lines, tuple(lines[0]))}\n"] if lines else []
