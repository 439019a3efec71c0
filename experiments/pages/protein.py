"""The page that `protein_results.py` makes of its measurements."""

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pairmi.backbones.identity import identify
from pairmi.bench import contacts, head, protein, report
from pairmi.model import Model
from pairmi.provenance import provenance
from studies.protein_study import QUALITY

PAPER = dict(zip(protein.TABLE_2, ((74.8, 0.093), (19.1, 0.185), (9.8, 0.196), (6.2, 0.218), (15.3, 0.136), (10.0, 0.174)), strict=True))
DIFFERENCES = ("rule", "against", "passes", "its passes", "more")
TITLES = {
    "perplexity": "The model: perplexity of masked residues",
    "proteins": "The paper's table 2",
    "head": "The head",
    "contacts": "Contacts",
}
CAVEAT = """
The paper's figures are those of ESM-C 300M against UniRef50, embedded by ESM-C; it does not say whether it reports the divergence or its root. Only the order of the rows can be compared.
"""
HEADS = "How well heads estimate mutual information, beside controls, is in [sampled.md](sampled.md#heads-over-rows)."  # where it was not measured here
Record = dict[str, Any]


def around(record: Record, value: str, low: str, high: str) -> str:
    """A number with its interval."""
    return f"{record[value]:.4f} [{record[low]:.4f}, {record[high]:.4f}]"


def comparison(records: list[Record], paper: bool) -> str:
    rows = []
    for record in records:
        theirs = PAPER.get(record["rule"]) if paper else None
        row = {"rule": record["rule"]} | (
            {"paper: passes": theirs[0] if theirs else "", "paper: JSD": theirs[1] if theirs else ""} if paper else {}
        )
        row |= {"passes": record["passes"], "JSD": around(record, "jsd", "low", "high"), "root": record["root"]}
        row |= {
            "more than one by one": around(record, "more", "more_low", "more_high"),
            "seconds": record["seconds"],
            "rows": record["rows"],
        }
        rows.append(row)
    return report.table(rows, tuple(rows[0]))


def differences(records: list[Record]) -> str:
    rows = [record | {"its passes": record["its_passes"], "more": around(record, "more", "more_low", "more_high")} for record in records]
    return report.table(rows, DIFFERENCES)


def verdict(found: Record, options: argparse.Namespace) -> str:
    """What the intervals say, in words."""
    duels, lines = found["duels"], []
    worse = [r for r in found["apart"] if r["more_low"] > 0]
    lines.append(
        f"Of the {len(found['apart'])} chosen settings of at most {options.passes:g} passes, {len(worse)} are further from the reference than one by one by more than their interval."
    )
    for rule in dict.fromkeys(record["rule"] for record in duels):
        mine = [record for record in duels if record["rule"] == rule]
        below, above = (sum(test) for test in ([r["more_high"] < 0 for r in mine], [r["more_low"] > 0 for r in mine]))
        lines.append(
            f"`{rule}`: nearer than {below} of the {len(mine)} chosen rules that do not look at pairs, further than {above}, not to be told apart from {len(mine) - below - above}."
        )
    if duels and not any(r["more_high"] < 0 or r["more_low"] > 0 for r in duels):
        lines.append("**So many sequences of this model cannot tell the rules that look at pairs from those that do not.**")
    return "\n".join(f"* {line}" for line in lines)


def slow(found: Record, passes: float) -> str:
    """The rules that have no setting of so few passes, with what their quickest takes."""
    quickest: dict[str, float] = {}
    for record in found["validation"]:
        family = report.family(record["rule"])
        quickest[family] = min(quickest.get(family, record["passes"]), record["passes"])
    told = ", ".join(f"`{family}` ({least:.3g})" for family, least in quickest.items() if least > passes)
    return f", without the rules that have none so quick (passes of their quickest: {told})" if told else ""


def table_section(found: Record, options: argparse.Namespace, paper: bool, count: int, figure: str) -> str:
    floor, best = found["floor"], set(found["best"])
    table = [record for record in found["tested"] if record["rule"] in protein.TABLE_2]
    chosen = [record for record in found["tested"] if record["rule"] in best]
    paired = (
        f"\nThe chosen rules that look at pairs against the chosen ones that do not, within {options.passes:g} passes; `more` is how much further from the reference:\n\n{differences(found['duels'])}\n"
        if found["duels"]
        else ""
    )
    return f"""{count} sequences against {count}, {options.clusters} clusters, Jensen-Shannon divergence in nats with 95 % bootstrap intervals (`root`: its square root). **Noise floor**, the reference
against others of its own kind: {floor["value"]:.4f} ({floor["low"]:.4f} to {floor["high"]:.4f}). No rule can be expected below it.

{comparison(table, paper)}
{"" if not paper else chr(10) + "The budgets of the paper's rows are in nats: where a residue has almost 3, as here, a budget of 2 or 4 admits one residue a pass." + chr(10)}
Of each rule the setting that was best on the validation half within {options.passes:g} passes (of {len(found["validation"])} settings in all, tried on {options.tried or count} sequences each){slow(found, options.passes)}, on the test half:

{comparison(chosen, False)}
{paired}
{verdict(found, options)}

The rest: divergence of the residue composition, share of low complexity, distinct sequences, median identity with the nearest training sequence, pseudo-perplexity, residues
recovered in half-hidden sequences (the last three of {options.scored} sequences).

{report.table(found["qualities"], QUALITY)}

![{figure}](figures/{figure}.png)
"""


def above_chance(summary: list[Record]) -> str:
    """Which ways to rank pairs find contacts at all."""
    chance = {(row["separation"], row["top"]): row["precision"] for row in summary if row["method"] == "chance"}
    better = [row for row in summary if row["method"] != "chance" and row["low"] > chance[row["separation"], row["top"]]]
    told = "; ".join(f"{row['method']} ({row['separation']}, {row['top']})" for row in better)
    return f"Above chance with its whole interval: {told or 'none, so this model is too weak to see contacts'}."


def head_section(found: Record) -> str:
    everything = [record for record in found["scores"] if record["group"] == "all"]
    groups = [record for record in found["scores"] if record["group"] != "all" and not record["estimate"].endswith("shuffled")]
    heads = [record for record in groups if record["estimate"] not in ("probe", "constant", "entropy product", "attention")]
    costs = ("head", "parameters", "head_mflop", "flop_share", "head_ms", "pass_ms", "time_share", "rows")
    return f"""{found["states"]} labelled states (form {found["made_by"]["form"]}, floor {found["made_by"]["floor"]} nats), split by family: no state of a test family was trained on. The head knows where two
positions are by their distance alone, so it takes any length. The scale of a control is fitted.

{report.table(everything, ("states of", *(column for column in head.COLUMNS if column != "auroc")))}

{report.table(heads, ("states of", "group", "states", "mean", "r2", "spearman", "mae"))}

![calibration](figures/protein_head.png)

Cost beside a pass, on empty canvases of {found["length"]} residues:

{report.table(found["costs"], costs)}

Rows of the pruned probe against 1 + N|V|, on the last of these states (where only some positions of a state were probed, the rows are theirs and the certificate is that of the others):

{report.table(found["rows"], ("group", "states", "rows", "full", "fewer", "certificate", "asymmetry", "inconsistency"))}
"""


def previous(file: Path, title: str) -> str | None:
    """What a page said under a title, with the commit that it was measured at, for a part that was not measured now."""
    text = file.read_text() if file.is_file() else ""
    _, found, rest = text.partition(f"\n## {title}\n\n")
    body = rest.partition("\n## ")[0].strip()
    if not found or body.startswith("Not measured"):
        return None
    commit = re.search(r"commit (\w{7})", text)
    return body if body.startswith("(Measured at") or commit is None else f"(Measured at commit {commit[1]}.) {body}"


def command(found: dict[str, Record | None], options: argparse.Namespace) -> str:
    """What measures the parts that were measured now; those that were not name their own commit."""
    flags = f" --proteins {options.proteins} --tried {options.tried or options.proteins} --every {options.every} --scored {options.scored}"
    touching = f" --pdb PDB --structures {options.structures} --deals {options.deals}"
    given = (" --train FASTA --validation FASTA", "perplexity"), (flags, "proteins"), (touching, "contacts")
    told = "".join(text for text, part in given if found[part] is not None)
    return f"python experiments/protein_results.py --precision {options.precision}{told}"


def page(found: dict[str, Record | None], model: Model, options: argparse.Namespace) -> str:
    def section(name: str, text: Callable[[Record], str], without: str = "Not measured.") -> str:
        part = found[name]
        return previous(options.out, TITLES[name]) or without if part is None else text(part)

    about = ", ".join(f"{key} {value}" for key, value in provenance().items())
    perplexity = section(
        "perplexity",
        lambda part: (
            f"""On one sequence of each of {part["families"]} validation families; the residue frequencies alone come to {part["unigram"]:.2f}.

{report.table(part["rows"], ("masked", "perplexity"))}"""
        ),
    )
    table = section("proteins", lambda part: table_section(part, options, True, options.proteins, "protein") + CAVEAT)
    touch = section(
        "contacts",
        lambda part: (
            f"""{above_chance(part["summary"])}

{report.table(part["summary"], contacts.COLUMNS)}

![contacts](figures/protein_contacts.png)"""
        ),
    )
    return f"""# Proteins: what dependence buys

(AntiBERTy, a pretrained model of antibodies: [antibody-results.md](antibody-results.md).) Printed by `{command(found, options)}` ({about}; weights {identify(model)}, matrix products in {options.precision}). Times were taken on a shared machine and are rough.

## {TITLES["perplexity"]}

{perplexity}

## {TITLES["proteins"]}

{table}

## {TITLES["head"]}

{section("head", head_section, HEADS)}

## {TITLES["contacts"]}

{touch}

"""
