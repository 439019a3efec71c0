"""Where the atoms of a product come from, read from RXNMapper's dependency map alone. Results go to docs/maps.md.

    pip install rdkit && pip install --no-deps rxnmapper==0.4.3
    python experiments/atom_mapping.py [--data ../shared/data/chemistry/uspto50k_mapped_1000.csv.gz] [--limit N]

For each reaction a block of product atoms is masked at a time, and one reactant atom after the other with it
(`masking_information`). Every reaction's scores are kept in --records: an interrupted run goes on where it stopped. How scores become
a choice is chosen on the first --choice reactions, for each kind of score from the same settings, and reported on the others.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from pages.maps import write_section
from pairmi.backbones.identity import identify
from pairmi.bench import report
from pairmi.bench.ledger import Ledger
from pairmi.bench.stats import Interval, resamples
from pairmi.counting import Counting
from pairmi.loading import load
from pairmi.mi.maps import masking_information
from pairmi.model import Model
from pairmi.provenance import provenance
from pairmi.types import PairmiError
from studies.assignment import GRID, Assignment
from studies.reactions import Reaction, read_reactions

Record = dict[str, Any]
PLAIN = Assignment()


def told(model: Model, reaction: Reaction, blocks: int) -> tuple[np.ndarray, int]:
    """What each reactant atom tells of each masked product atom, in nats [product atom, reactant atom], and the rows it took."""
    tokens, meter, places = model.vocab.encode(reaction.text), Counting(model), reaction.places(model.vocab)
    sources, targets = (torch.zeros(len(tokens), dtype=torch.bool).index_fill(0, torch.from_numpy(where), True) for where in places)
    with torch.inference_mode():
        found = masking_information(meter, tokens, blocks, sources=sources, targets=targets).numpy()
    return found[np.ix_(*places)].T, meter.rows


def measured(reaction: Reaction, model: Model, attentive: Model, blocks: int) -> Record:
    nats, rows = told(model, reaction, blocks)
    with torch.inference_mode():
        attention = attentive(model.vocab.encode(reaction.text)[None]).attention[0].numpy()
    reactants, products = reaction.places(model.vocab)
    back = attention[np.ix_(reactants, products)].T
    scores = {"told": nats, "attention": attention[np.ix_(products, reactants)], "attention_back": back}
    return {name: [[float(f"{x:.4g}") for x in row] for row in values] for name, values in scores.items()} | {"rows": rows}


KINDS: dict[str, Callable[[Record], np.ndarray]] = {
    "map": lambda record: np.array(record["told"]),
    "mean attention, product to reactant": lambda record: np.array(record["attention"]),
    "mean attention, both directions": lambda record: np.array(record["attention"]) + np.array(record["attention_back"]),
}


def hits(reactions: list[Reaction], records: list[Record], kind: str, way: Assignment) -> np.ndarray:
    """[reaction, (right, atoms)]."""
    found = [r.right(way(r, KINDS[kind](record))) for r, record in zip(reactions, records, strict=True)]
    return np.array([[one.sum(), len(one)] for one in found])


def share_of(counts: np.ndarray, less: np.ndarray | None = None) -> Interval:
    """Right atoms among all, in percent, with a bootstrap interval over reactions; or the difference to another method's."""
    right = counts[:, 0] - (0 if less is None else less[:, 0])
    some = resamples(len(counts), 2000, 0)
    low, high = np.quantile(right[some].sum(1) / counts[:, 1][some].sum(1), (0.025, 0.975))
    return Interval(*(100 * float(x) for x in (right.sum() / counts[:, 1].sum(), low, high)))


def verdict(difference: Interval) -> str:
    return "better" if difference.low > 0 else "worse" if difference.high < 0 else "not told apart"


def chance(reactions: list[Reaction]) -> float:
    """Of a choice among the reactant atoms of the same element."""
    each = [
        (r.reactants.ranks[r.possible[atom]] == r.reactants.ranks[home]).mean()
        for r in reactions
        for atom, home in enumerate(r.source)
        if home >= 0 and r.possible[atom].any()
    ]
    return 100 * sum(each) / sum(int((r.source >= 0).sum()) for r in reactions)


def draw(reactions: list[Reaction], records: list[Record], file: Path) -> str:
    """The map and the attention of one reaction, a middle-sized one; published sources are circled."""
    plt = report.pyplot()
    sized = sorted((n for n, r in enumerate(reactions) if (r.source >= 0).all()), key=lambda n: len(reactions[n].reactants))
    number = sized[len(sized) // 2]
    reaction, record = reactions[number], records[number]
    figure, axes = plt.subplots(1, 2, figsize=(15, 6.4), layout="constrained")
    for axis, kind in zip(axes, tuple(KINDS)[:2], strict=True):
        values = np.where(reaction.possible, KINDS[kind](record), 0)
        image = axis.imshow(values / np.maximum(values.max(1, keepdims=True), 1e-12), cmap="cividis", vmin=0, vmax=1, aspect="auto")
        axis.scatter(reaction.source, range(len(reaction.source)), s=50, facecolors="none", edgecolors="#D55E00", label="published source")
        axis.set_xticks(range(len(reaction.reactants)), reaction.reactants.elements, fontsize=8)
        axis.set_yticks(range(len(reaction.products)), reaction.products.elements, fontsize=8)
        axis.set(xlabel=f"reactant atom: {reaction.reactants.text}", ylabel=f"product atom: {reaction.products.text}")
        axis.set_title(kind, fontsize=10)
        figure.colorbar(image, ax=axis, shrink=0.8, label="share of the row's largest, atoms of the same element")
    axes[0].legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), frameon=False)
    report.save(figure, file)
    return reaction.name


def section(reactions: list[Reaction], records: list[Record], left_out: int, total: int, drawn: str, options: argparse.Namespace) -> str:
    first, rest, others = slice(0, options.choice), slice(options.choice, None), len(reactions) - options.choice
    lines, tested = [], {}
    for kind in KINDS:
        tries = {way: share_of(hits(reactions[first], records[first], kind, way)).value for way in GRID}
        best = max(tries, key=lambda way: tries[way])
        for way in dict.fromkeys((PLAIN, best)):
            tested[kind, way == PLAIN] = counts = hits(reactions[rest], records[rest], kind, way)
            found = share_of(counts)
            about = {"scores": kind, "choice": str(way), f"first {options.choice}": tries[way], f"other {others}": found.value}
            lines.append(about | {"low": found.low, "high": found.high})
        tested.setdefault((kind, False), tested[kind, True])
    own, attention, both = KINDS
    gains = {
        "map, chosen - mean attention as it is": share_of(tested[own, False], tested[attention, True]),
        "map, chosen - mean attention of both directions as it is": share_of(tested[own, False], tested[both, True]),
        "map, chosen - mean attention, chosen": share_of(tested[own, False], tested[attention, False]),
        "map as it is - mean attention as it is": share_of(tested[own, True], tested[attention, True]),
    }
    differences = [
        {"difference": name, "value": x.value, "low": x.low, "high": x.high, "the map is": verdict(x)} for name, x in gains.items()
    ]
    known = provenance() | {"commit": records[0]["provenance"]["commit"]}
    about = ", ".join(f"{key} {value}" for key, value in (known | {"printed at": provenance()["commit"][:12]}).items())
    atoms = int(tested[own, True][:, 1].sum())
    rows = np.mean([record["rows"] for record in records])
    return f"""## Atoms: where a product's come from, by RXNMapper's map

Printed by `python experiments/atom_mapping.py --choice {options.choice}{f" --limit {options.limit}" if options.limit else ""}` ({about}; weights {records[0]["settings"]["weights"]}, {options.precision}).

RXNMapper (Schwaller et al. 2021) is a masked language model of reactions; nobody told it where atoms go. The map (`by="masking"`): a quarter of the product atoms is masked at a time; what does each reactant atom tell of each of them, in nats? A product atom is then said to come from the reactant atom of the same element that tells most. Truth: the maps of
{total} reactions of USPTO-50k; atoms that symmetry makes equal count as one. {len(reactions)} reactions are measured here; {left_out} have symbols that the model does not know. A reaction takes {rows:.0f} rows. What is known without a model may help any score: each reactant atom is used about once, bonded atoms come from bonded atoms
(`experiments/studies/assignment.py`, {len(GRID)} settings); the best of these is chosen for every kind of score on the first {options.choice} reactions. Percent of product atoms, {atoms} of them in the last columns, with 95 % bootstrap intervals over reactions; chance (a reactant atom of the same element): {chance(reactions[rest]):.1f} %.

{report.table(lines, tuple(lines[0]))}

Differences on the other {others} reactions, in percent of atoms:

{report.table(differences, tuple(differences[0]))}

How to read it: the aim, set before it was measured, was to be above mean attention. The first two lines give the map a help that attention does not get; the third gives both the same; the fourth gives neither any. Fair are the last two. RXNMapper's own tool reads one chosen head, also with the help of neighbours; it is not compared here.

![atom map](figures/atom_mapping.png)

Drawn: {drawn}. Orange circles are the published sources.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, default=Path(__file__).parents[1] / "../shared/data/chemistry/uspto50k_mapped_1000.csv.gz", help="id,reaction"
    )
    parser.add_argument("--limit", type=int, help="only the first so many reactions")
    parser.add_argument("--choice", type=int, default=200, help="reactions on which settings are chosen; reported are the others")
    parser.add_argument("--blocks", type=int, default=4, help="a context masks 1 / blocks of the atoms of one side")
    parser.add_argument("--precision", default="bfloat16", choices=("float32", "bfloat16"), help="of the matrix products")
    parser.add_argument("--measured", action="store_true", help="report what is in --records, measure nothing")
    parser.add_argument("--records", type=Path, default=Path("runs/atom-mapping/scores.jsonl"))
    parser.add_argument("--out", type=Path, default=Path("docs/maps.md"))
    options = parser.parse_args()
    model, attentive = load("rxnmapper", device="cpu", precision=options.precision), load("rxnmapper", device="cpu", attention=True)
    ledger, weights, total = Ledger(options.records), identify(model), read_reactions(options.data)
    reactions, records, left_out = list[Reaction](), list[Record](), 0
    for reaction in tqdm(total[: options.limit], desc="reactions"):
        try:
            model.vocab.encode(reaction.text, reaction.name)
        except PairmiError:
            left_out += 1
            continue
        settings = {"reaction": reaction.text, "weights": weights, "blocks": options.blocks, "precision": options.precision}
        record = ledger.find(settings)
        if record is None and not options.measured:
            record = ledger.add(settings, measured(reaction, model, attentive, options.blocks))
        if record is not None:
            reactions.append(reaction)
            records.append(record)
    if len(reactions) <= options.choice:
        raise SystemExit(f"{len(reactions)} reactions are measured, and {options.choice} are for choosing: none is left to report")
    drawn = draw(reactions, records, options.out.parent / "figures" / "atom_mapping.png")
    text = section(reactions, records, left_out, len(total), drawn, options)
    write_section(options.out, "atom_mapping.py", text)
    print(text)


if __name__ == "__main__":
    main()
