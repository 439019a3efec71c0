"""The page that `antibody_results.py` makes of its measurements."""

import argparse

from pages.protein import HEADS, Record, table_section
from pairmi.backbones.identity import identify
from pairmi.bench import head, report
from pairmi.model import Model
from pairmi.provenance import provenance


def head_section(found: Record) -> str:
    groups = [record for record in found["scores"] if record["group"] != "all" and record["estimate"] in ("antiberty", "antiberty-head")]
    whole = 1 + 20 * found["positions"]
    rows = [row | {"unpruned": whole, "fewer": whole / row["rows"]} for row in found["rows"]]
    costs = ("head", "parameters", "head_mflop", "flop_share", "head_ms", "pass_ms", "time_share", "rows")
    return f"""{found["states"]} labelled states, of each the MI of {found["positions"] or "all"} positions with all others (floor {found["floor"]} nats), from the reference of the test and from what six rules visit when they
generate; the head has learnt from none of them. The scale of a control is fitted.

{report.table([record for record in found["scores"] if record["group"] == "all"], tuple(column for column in head.COLUMNS if column != "auroc"))}

{report.table(groups, ("group", "states", "mean", "r2", "spearman", "mae"))}

![calibration](figures/antibody_head.png)

Cost beside a pass in float32, on empty canvases of {found["length"]} residues:

{report.table(found["costs"], costs)}

Rows of the pruned probe of {found["positions"]} positions of the test states (1 + {found["positions"]} |V| unpruned; where fewer positions are unsure, also for that reason):

{report.table(rows, ("group", "states", "rows", "unpruned", "fewer", "asymmetry", "inconsistency"))}
"""


def page(
    table: Record, fidelity: Record | None, chain: Record, lowered: list[Record] | None, model: Model, options: argparse.Namespace
) -> str:
    about = ", ".join(f"{key} {value}" for key, value in provenance().items())
    alone = (
        "" if model.head else " Without a head for it the rules that look at pairs were left out: probing in every pass is too expensive."
    )
    half = (
        f"""
## What half precision changes

The chain, some of it masked, in {options.precision} against float32: mean KL of the marginals, and the MI of four positions with all others by probing, in nats.

{report.table(lowered, tuple(lowered[0]))}
"""
        if lowered
        else ""
    )
    return f"""# AntiBERTy: what dependence buys on a pretrained model

Printed by `python experiments/antibody_results.py --sequences {options.sequences} --tried {options.tried} --scored {options.scored} --precision {options.precision}{" --head FILE" if model.head else ""}` ({about}; weights {identify(model)}, matrix products in {options.precision}). Times were taken on a shared machine and are rough.

AntiBERTy (Ruffolo, Gray, Sulam 2021; 26 M parameters, MIT) is a masked language model of antibody variable domains, trained by others to fill in 15 % of a sequence; here it makes chains of {options.lengths[0]}-{options.lengths[1]} residues from nothing.
The reference are its own one-by-one samples: what is measured is what a rule loses against one by one, not how good the model is.{alone}

## The paper's table 2

{table_section(table, options, False, options.sequences, "antibody")}
## The head

{HEADS if fidelity is None else head_section(fidelity)}

## A heavy chain

The residues of trastuzumab's heavy chain are dealt into {options.blocks} blocks, each two of which are masked once and probed ({chain["rows"]} rows). The strongest relations between its regions:

{report.table(chain["regions"][:8], ("between", "pairs", "mean_nats"))}

![map](figures/antibody_map.png)
{half}"""
