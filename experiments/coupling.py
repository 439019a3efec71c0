"""What drawing dependent positions together saves: price, validity, passes, rows and time on 9x9 Sudoku.

    python experiments/coupling.py [--only price exact plain verified solve speed mi worlds cost picture] [--page]

Units of 50 sequences are kept in --records, so that an interrupted run goes on where it stopped; --page writes docs/coupling.md and its
pictures from what there is. One walk prices marginals and learnt tables on the same sets; exact tables (a row more for each member) come on the
first units only. Matrix products in bfloat16. Before: `python experiments/coupling_charges.py` (charges for what the tables leave), `pairmi
labels --out runs/coupling/test-states --states 1536 --only test --seed 24` (for mi); also on the page: coupling_models.py, coupling_curve.py.
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
from pairmi.backbones.identity import identify
from pairmi.backbones.tabular import Tabular
from pairmi.bench.ledger import Ledger, depends_on
from pairmi.commit import Sampling
from pairmi.decoding import decode
from pairmi.loading import load
from pairmi.model import Model
from pairmi.pricing.price import measure
from pairmi.spec import rule
from pairmi.store import read_store
from pairmi.tasks.sudoku.puzzles import TEST, complete_grids, minimal_puzzles
from pairmi.tasks.tables import markov_chain, permutations, random_table
from studies.coupling import best_passes, cost_of_coupling, fidelity_of_tables, moved_by, readings_of_tables, rule_passes, seconds_a_board

UNIT = 50
SETS = (  # who is filled together, from careful to reckless
    "mi-bound:budget=1,entropy_weight=0.1",
    "mi-bound:budget=0.3,entropy_weight=0.1",
    "mi-bound:budget=0.06,entropy_weight=0.02,penalty=4",
    "mi-bound:budget=1",
    "mi-bound:budget=3",
    "top-k:k=4",
)
EB = "eb:budget=0.1"
CHARGED = tuple(f"mi-bound:charge=calibrated,budget={budget}" for budget in (0.02, 0.05, 0.1, 0.3))  # what is left after the shift
DEFERRED = (*(f"{SETS[4]},draw=coupled,defer={limit}" for limit in (0.003, 0.006, 0.01)), f"{SETS[3]},draw=coupled,defer=0.01")
DOUBTED = (f"{SETS[4]},draw=coupled,defer=0.1", f"{SETS[4]},draw=coupled,defer=0.2")  # drafts
LATE = (f"{SETS[4]},draw=coupled,defer=0.05,late=0.3",)  # chosen by coupling_sweep.py
COUPLED = tuple(f"{sets},draw=coupled" for sets in (*SETS[:2], *CHARGED))
PLAIN = ("sequential", EB, *DEFERRED, SETS[2], SETS[0], *COUPLED)
VERIFIED = (*LATE, *DOUBTED, *(f"{sets},draw=coupled" for sets in (SETS[3], CHARGED[2], CHARGED[3], SETS[0], SETS[4])), SETS[2])
SOLVE = (
    "sequential",
    *DEFERRED[:2],
    SETS[2],
    f"{SETS[2]},draw=coupled",
    SETS[0],
    f"{SETS[0]},draw=coupled",
    *(f"{s},draw=coupled" for s in CHARGED[:2]),
)
SPEED = ("sequential", EB, *DEFERRED[:2], SETS[2], COUPLED[0], *(f"{sets},draw=coupled" for sets in CHARGED[:2]))


def units(first: int, last: int) -> Iterator[range]:
    """Sequences in lots."""
    return (range(start, start + UNIT) for start in range(first, last, UNIT))


def chosen(specs: Sequence[str], options: argparse.Namespace) -> list[str]:
    """The rules that are asked for."""
    asked = [spec for spec in specs if options.having is None or any(part in spec for part in options.having)]
    return [spec for spec in asked if not (options.untabled and "draw=coupled" in spec)]


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
) -> Mapping[str, Any]:
    """Some canvases decoded, and judged."""
    key = {"what": what, "model": model.name} | depends_on(model, spec) | {"first": part[0], "sampling": dict(sampling)}

    def measured() -> Mapping[str, Any]:
        out = decode(model, canvases, rule(spec, model), Sampling(**sampling), index=list(part), batch_size=UNIT)
        right = [model.task.conflict(one.tokens) is None for one in out]
        return {"valid": right, "passes": [one.passes for one in out], "rows": [one.rows for one in out]}

    return ledger.measured(key, measured)


def sudoku(ledger: Ledger, options: argparse.Namespace) -> None:
    """All that is measured on the Sudoku model."""
    model = load("sudoku", precision="bfloat16")
    empty = torch.full((81,), model.vocab.size)
    for what in options.only:
        if what == "price":
            for spec in chosen(DEFERRED, options):
                sets, _, draw = spec.partition(",draw=")
                for part in tqdm(list(units(0, options.priced)), desc=spec):
                    priced(model, ledger, sets, (draw,), empty, part)
            for sets in chosen((*SETS, *CHARGED), options):
                for part in tqdm(list(units(0, options.priced)), desc=sets):
                    priced(model, ledger, sets, ("coupled",) if sets in CHARGED else ("marginal", "coupled"), empty, part)
        if what == "exact":
            for sets in chosen((*SETS, EB), options):
                for part in tqdm(list(units(0, options.exact)), desc=f"{sets}, exact"):
                    priced(model, ledger, sets, ("marginal",) if sets == EB else ("marginal", "probed"), empty, part)
        if what in ("plain", "verified"):
            for spec in chosen(PLAIN if what == "plain" else VERIFIED, options):
                for part in tqdm(list(units(0, options.boards if what == "plain" else options.verified)), desc=f"{what} {spec}"):
                    made(model, ledger, spec, {"verify": what == "verified"}, part, [empty] * UNIT, what)
        if what == "solve":
            puzzles = minimal_puzzles(options.puzzles, TEST).canvases
            for part in tqdm(list(units(0, options.puzzles)), desc="solve"):
                for spec in chosen(SOLVE, options):
                    made(model, ledger, spec, {"greedy": True}, part, list(puzzles[part[0] : part[-1] + 1]), "solve")
        if what == "picture":
            grid = complete_grids(1, TEST)[0]
            hidden = torch.rand(81, generator=torch.Generator().manual_seed(1)) < 0.65
            canvas = torch.where(hidden, model.vocab.size, grid)
            key = {"what": "picture", "cell": "most uncertain"} | depends_on(model, f"{SETS[0]},draw=coupled")
            ledger.measured(key, lambda: moved_by(model, canvas))  # noqa: B023
        if what == "cost":
            for spec in (COUPLED[0], DEFERRED[1]):
                ledger.measured({"what": "cost"} | depends_on(model, spec), lambda: cost_of_coupling(model, spec, empty.expand(64, -1)))  # noqa: B023
        if what == "speed":
            specs = chosen(SPEED, options)
            key = {"what": "speed", "rules": specs} | depends_on(model, COUPLED[0])
            ledger.measured(key, lambda: {"seconds": seconds_a_board(model, specs)})  # noqa: B023
        if what == "mi":
            plain, (labels, _) = load("sudoku"), read_store(options.labels)
            assert plain.head is not None
            assert plain.tables is not None
            own = {"head": fingerprint(plain.head.state_dict()), "tables": fingerprint(plain.tables.state_dict())}
            key = {"what": "mi", "states": len(labels.split("test")), **own, "weights": identify(plain)}
            ledger.measured(key, lambda: fidelity_of_tables(plain, labels.split("test")))  # noqa: B023
            ledger.measured(key | {"what": "readings"}, lambda: {"rows": readings_of_tables(plain, labels.split("test"))})  # noqa: B023


def worlds(ledger: Ledger, options: argparse.Namespace) -> None:
    """The search in exact worlds."""
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
    every = ("price", "exact", "plain", "verified", "solve", "speed", "mi", "worlds", "cost", "picture")
    parser.add_argument("--only", nargs="+", choices=every, default=every)
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page")
    parser.add_argument("--boards", type=int, default=1000)
    parser.add_argument("--priced", type=int, default=1000, help="boards with a price")
    parser.add_argument("--having", nargs="+", help="only rules with one of these in their specifications, such as calibrated")
    parser.add_argument("--untabled", action="store_true", help="only rules that draw by no learnt tables")
    parser.add_argument("--exact", type=int, default=100, help="boards with exact tables")
    parser.add_argument("--verified", type=int, default=300, help="boards")
    parser.add_argument("--puzzles", type=int, default=1000)
    parser.add_argument("--labels", type=Path, default=Path("runs/coupling/test-states"), help="states with probed MI")
    parser.add_argument("--records", type=Path, default=Path("experiments/records/coupling.jsonl"))
    parser.add_argument("--out", type=Path, default=Path("docs/coupling.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    ledger = Ledger(options.records)
    if not options.page:
        sudoku(ledger, options)
        worlds(ledger, options)
    model = load("sudoku")
    assert isinstance(model.tables, nn.Module)
    options.out.write_text(
        page(ledger, options.out, fingerprint(model.tables.state_dict()), model.residuals.get("coupled"), identify(model))
    )


if __name__ == "__main__":
    main()
