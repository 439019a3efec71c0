"""What drawing dependent positions together saves: price, validity, passes, rows and time on 9x9 Sudoku, and prices on proteins.

    python experiments/coupling.py [--only price exact plain verified solve protein worlds cost picture] [--page]

Units of 50 sequences are kept in --records, so that an interrupted run goes on where it stopped; --page writes docs/coupling.md and its
pictures from what there is. One walk prices marginals and learnt tables on the same sets; exact tables (a row more for each member) come on the
first units only. Matrix products in bfloat16.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from tqdm import tqdm

from pages.coupling import page
from pairmi.backbones.checkpoint import fingerprint
from pairmi.backbones.tabular import Tabular
from pairmi.bench.ledger import Ledger, depends_on
from pairmi.commit import Sampling
from pairmi.decoding import decode
from pairmi.loading import load
from pairmi.model import Model
from pairmi.pricing.price import measure
from pairmi.spec import rule
from pairmi.tasks.sudoku.puzzles import TEST, complete_grids, minimal_puzzles
from pairmi.tasks.tables import markov_chain, permutations, random_table
from studies.coupling import best_passes, cost_of_coupling, moved_by, rule_passes

UNIT = 50
SETS = (  # who is filled together, from careful to reckless
    "mi-bound:budget=1,entropy_weight=0.1",
    "mi-bound:budget=0.3,entropy_weight=0.1",
    "mi-bound:budget=0.06,entropy_weight=0.02,penalty=4",
    "mi-bound:budget=1",
    "mi-bound:budget=3",
    "top-k:k=4",
)
PLAIN = (f"{SETS[0]},draw=coupled", f"{SETS[1]},draw=coupled", "sequential", "eb:budget=0.1", SETS[2], SETS[0])
VERIFIED = (f"{SETS[3]},draw=coupled", f"{SETS[0]},draw=coupled", f"{SETS[4]},draw=coupled", SETS[2])
PROTEIN = ("top-k:k=4", "top-k:k=8")


def units(first: int, last: int) -> Iterator[range]:
    """Sequences in lots."""
    return (range(start, start + UNIT) for start in range(first, last, UNIT))


def drawn(sets: str, draw: str) -> str:
    """A rule with a way of drawing."""
    return sets if draw == "marginal" else f"{sets},draw={draw}"


def priced(model: Model, ledger: Ledger, sets: str, draws: Sequence[str], canvas: torch.Tensor, part: range) -> None:
    """A walk over some sequences, for all ways of drawing."""
    specs = {draw: drawn(sets, draw) for draw in draws}
    keys = {
        draw: {"what": "price", "model": model.name, "draw": draw, "sets": sets} | depends_on(model, spec) | {"first": part[0]}
        for draw, spec in specs.items()
    }
    if all(ledger.find(key) for key in keys.values()):
        return
    rules = {draw: rule(spec, model) for draw, spec in specs.items()}
    for draw, found in zip(rules, measure(model, [canvas] * len(part), rules, seed=part[0]), strict=True):
        tested = found.members.rank > 0
        rejected = torch.zeros(len(part), dtype=torch.float64).index_add(
            0, found.members.sequence[tested], found.members.variation[tested].double()
        )
        values = {"nats": found.each, "passes": found.each_passes, "rejections": rejected}
        ledger.add(keys[draw], {name: value.tolist() for name, value in values.items()})


def made(
    model: Model, ledger: Ledger, spec: str, sampling: Mapping[str, Any], part: range, canvases: Sequence[torch.Tensor], what: str
) -> None:
    """Some canvases decoded, and judged."""
    key = {"what": what, "model": model.name} | depends_on(model, spec) | {"first": part[0], "sampling": dict(sampling)}

    def measured() -> Mapping[str, Any]:
        out = decode(model, canvases, rule(spec, model), Sampling(**sampling), index=list(part), batch_size=UNIT)
        right = [model.task.conflict(one.tokens) is None for one in out]
        return {"valid": right, "passes": [one.passes for one in out], "rows": [one.rows for one in out]}

    ledger.measured(key, measured)


def sudoku(ledger: Ledger, options: argparse.Namespace) -> None:
    """All that is measured on the Sudoku model."""
    model = load("sudoku", precision="bfloat16")
    empty = torch.full((81,), model.vocab.size)
    for what in options.only:
        if what == "price":
            for sets in SETS[: options.sets]:
                for part in tqdm(list(units(0, options.boards)), desc=sets):
                    priced(model, ledger, sets, ("marginal", "coupled"), empty, part)
        if what == "exact":
            for sets in SETS[: options.sets]:
                for part in tqdm(list(units(0, options.exact)), desc=f"{sets}, exact"):
                    priced(model, ledger, sets, ("probed",), empty, part)
        if what in ("plain", "verified"):
            for spec in (PLAIN if what == "plain" else VERIFIED)[: options.rules]:
                for part in tqdm(list(units(0, options.boards if what == "plain" else options.verified)), desc=f"{what} {spec}"):
                    made(model, ledger, spec, {"verify": what == "verified"}, part, [empty] * UNIT, what)
        if what == "solve":
            puzzles = minimal_puzzles(options.puzzles, TEST).canvases
            for spec in ("sequential", SETS[2], f"{SETS[2]},draw=coupled", SETS[0], f"{SETS[0]},draw=coupled"):
                for part in tqdm(list(units(0, options.puzzles)), desc=f"solve {spec}"):
                    made(model, ledger, spec, {"greedy": True}, part, list(puzzles[part[0] : part[-1] + 1]), "solve")
        if what == "picture":
            grid = complete_grids(1, TEST)[0]
            hidden = torch.rand(81, generator=torch.Generator().manual_seed(1)) < 0.65
            canvas = torch.where(hidden, model.vocab.size, grid)
            key = {"what": "picture", "cell": "most uncertain"} | depends_on(model, f"{SETS[0]},draw=coupled")
            ledger.measured(key, lambda: moved_by(model, canvas))  # noqa: B023
        if what == "cost":
            ledger.measured({"what": "cost"} | depends_on(model, f"{SETS[0]},draw=coupled"), lambda: cost_of_coupling(model, SETS[0]))


def others(ledger: Ledger, options: argparse.Namespace) -> None:
    """Proteins by exact tables, and the search in exact worlds."""
    if "protein" in options.only:
        model = load("protein")
        for sets in PROTEIN:
            for part in list(units(0, options.proteins)):
                priced(model, ledger, sets, ("marginal", "probed"), torch.full((72,), model.vocab.size), part)
    if "worlds" in options.only:
        rng = torch.Generator().manual_seed
        for name, world in {
            "markov": markov_chain(5, 3, rng(0)),
            "table": random_table(5, 3, rng(1), 0.5, 1.5),
            "permutations": permutations(4),
        }.items():
            table = Tabular(world.support, world.weights, world.symbols)
            for coupled in (False, True):
                key = {"what": "worlds", "world": name, "coupled": coupled}
                ledger.measured(key, lambda: {"search": best_passes(table, coupled), "rule": rule_passes(table, coupled)})  # noqa: B023


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = ("price", "exact", "plain", "verified", "solve", "protein", "worlds", "cost", "picture")
    parser.add_argument("--only", nargs="+", choices=every, default=every)
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page")
    parser.add_argument("--boards", type=int, default=1000)
    parser.add_argument("--sets", type=int, default=len(SETS), help="so many of the set rules, the first ones")
    parser.add_argument("--rules", type=int, help="so many of the rules that are decoded with, the first ones; default: all")
    parser.add_argument("--exact", type=int, default=100, help="boards with exact tables")
    parser.add_argument("--verified", type=int, default=300, help="boards")
    parser.add_argument("--puzzles", type=int, default=200)
    parser.add_argument("--proteins", type=int, default=50)
    parser.add_argument("--records", type=Path, default=Path("runs/coupling/records.jsonl"))
    parser.add_argument("--out", type=Path, default=Path("docs/coupling.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    ledger = Ledger(options.records)
    if not options.page:
        sudoku(ledger, options)
        others(ledger, options)
    tables = load("sudoku").tables
    options.out.write_text(page(ledger, options.out, fingerprint(tables.state_dict()) if isinstance(tables, nn.Module) else ""))


if __name__ == "__main__":
    main()
