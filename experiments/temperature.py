"""docs/temperature.md: what every rule makes of boards at temperatures from 1 to 0, plain and verified, beside greedy decoding.

`python experiments/temperature.py [--puzzles 40] [--boards 100]`; what is in --records is not measured again.
"""

import argparse
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

import pairmi
from pairmi.bench import report
from pairmi.bench.ledger import Ledger, depends_on
from pairmi.bench.stats import wilson
from pairmi.loading import load
from pairmi.model import Model
from pairmi.provenance import provenance
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import rule
from pairmi.tasks.sudoku.puzzles import TEST, paper_puzzles
from studies.exact_price import exact_price

TEMPERATURES = {"sudoku4": (1.0, 0.5, 0.2, 0.1, 0.05, 0.01), "sudoku": (1.0, 0.1, 0.01)}
PRECISION = {"sudoku": "bfloat16"}
SETTINGS = {"mi-bound": "mi-bound:budget=0.06,entropy_weight=0.02,penalty=4", "independent-set": "independent-set:threshold=0.001"}
EXACT = {"mi-bound": "mi-bound:budget=0"}
PRICED = {
    "sudoku4": ("top-k:k=4", "eb:budget=1", "mi-bound:budget=0.3"),
    "sudoku": ("top-k:k=4", "eb:budget=0.5", "mi-bound:budget=0.3,entropy_weight=0.1,penalty=2"),
}  # what loses something at temperature 1
PRICE = "## The price at a temperature"
PRICES = (1.0, 0.5, 0.2, 0.1)  # temperatures


def right(model: Model, canvases: list[torch.Tensor], solutions: torch.Tensor | None, spec: str, how: dict[str, Any]) -> list[int]:
    """How many boards come out right, of how many."""
    out = pairmi.decode(model, canvases, spec, seed=1, **how)
    if solutions is None:
        return [sum(model.task.conflict(one.tokens) is None for one in out), len(out)]
    return [sum(bool((one.tokens == solution).all()) for one, solution in zip(out, solutions[: len(out)], strict=True)), len(out)]


def shown(counts: list[int]) -> str:
    low, high = wilson(*counts)
    return f"{100 * counts[0] / counts[1]:.0f} [{100 * low:.0f}, {100 * high:.0f}]"


def table(
    name: str,
    canvases: list[torch.Tensor],
    solutions: torch.Tensor | None,
    ledger: Ledger,
    specs: dict[str, str],
    drafted: int | None = None,
) -> str:
    """One line a rule and way of committing, verified on the first `drafted` canvases (default: all)."""
    model, records = load(name, precision=PRECISION.get(name)), []
    for family in tqdm(CATALOGUE, desc=name):
        spec = specs.get(family, family)
        for verify in (False, True):
            some = canvases[:drafted] if verify else canvases
            line: dict[str, Any] = {"rule": spec, "verified": verify, "boards": len(some)}
            for temperature in (*TEMPERATURES[name], 0.0):
                how = {"verify": verify} | ({"temperature": temperature} if temperature else {"greedy": True})
                key = {"temperature": name, "boards": len(some), "precision": PRECISION.get(name)} | depends_on(model, spec) | how
                found = ledger.measured(key, lambda: {"counts": right(model, some, solutions, spec, how)})  # noqa: B023 (called at once)
                line[f"T = {temperature:g}" if temperature else "greedy"] = shown(found["counts"])
            records.append(line)
    return report.table(records, tuple(records[0]))


def prices(name: str, sequences: int, ledger: Ledger) -> str:
    """Nats lost from the empty board at each temperature: exactly where the world is exact, else on so many sequences."""
    model, records = load(name, precision=PRECISION.get(name)), []
    assert model.length is not None
    empty = torch.full((model.length,), model.vocab.size)

    def measured(spec: str, temperature: float) -> str:
        if name == "sudoku4":
            return f"{exact_price(model.backbone, empty, rule(spec, model), temperature=temperature).nats:.3f}"
        found = pairmi.price(model, [empty], spec, seed=1, sequences=sequences, temperature=temperature)
        return f"{found.nats:.3f} [{found.interval[0]:.3f}, {found.interval[1]:.3f}]"

    for spec in tqdm(PRICED[name], desc=f"{name}, price"):
        line: dict[str, Any] = {"rule": spec}
        for temperature in PRICES:
            told = {"price": name, "sequences": sequences, "temperature": temperature, "precision": PRECISION.get(name)}
            key = told | depends_on(model, spec)
            line[f"T = {temperature:g}"] = ledger.measured(key, lambda: {"nats": measured(spec, temperature)})["nats"]  # noqa: B023 (called at once)
        records.append(line)
    return report.table(records, tuple(records[0]))


def about() -> str:
    """Commit, versions and machine."""
    told = ", ".join(f"{key} {value}" for key, value in provenance().items())
    return f"{told}; `sudoku` with matrix products in {PRECISION['sudoku']}"


def price_section(sequences: int, ledger: Ledger) -> str:
    """The last part of the page."""
    return f"""{PRICE}

Printed by `python experiments/temperature.py --only price --sequences {sequences}` ({about()}).

Temperature tempers both sides of the comparison: the price at T is KL(one by one in the rule's own order, drawn at T || at once, drawn at T), so in its formula conditionals and marginals are both tempered and the rule's sets are those
that it chooses from untempered probabilities (`pairmi.price(..., temperature=T)`, on the command line `--temperature`). Nats a board, from the empty one. In an exact world it stays of one size; a trained model gives no
symbol probability 0, and what contradicts costs up to |log p| / T, so there the price is highest at the lowest temperature. The exact 4x4 world:

{prices("sudoku4", sequences, ledger)}

`sudoku`, {sequences} boards, with 95 % intervals:

{prices("sudoku", sequences, ledger)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--puzzles", type=int, default=40)
    parser.add_argument("--drafted", type=int, default=40, help="of the puzzles, for verified decoding, which takes many more rows")
    parser.add_argument("--boards", type=int, default=100)
    parser.add_argument("--sequences", type=int, default=8, help="to price `sudoku` on")
    parser.add_argument("--only", choices=("price",), help="measure this alone and leave the rest of the page as it is")
    parser.add_argument("--records", type=Path, default=Path("runs/temperature.jsonl"))
    parser.add_argument("--out", type=Path, default=Path("docs/temperature.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.records.parent.mkdir(parents=True, exist_ok=True)
    ledger, puzzles = Ledger(options.records), paper_puzzles(options.puzzles, TEST)
    priced = price_section(options.sequences, ledger)
    if options.only == "price":
        options.out.write_text(options.out.read_text().partition(PRICE)[0].rstrip() + f"\n\n{priced}")
        return
    exact = table("sudoku4", [torch.full((16,), 4)] * options.boards, None, ledger, EXACT)
    solving = table("sudoku", list(puzzles.canvases), puzzles.solutions, ledger, SETTINGS, options.drafted)
    options.out.write_text(f"""# Temperature

Printed by `python experiments/temperature.py --puzzles {options.puzzles} --drafted {options.drafted} --boards {options.boards} --sequences {options.sequences}` ({about()}).

Temperature tempers what symbols are drawn from, p(x)^(1/T); a rule judges by the model's own, untempered probabilities. So a rule fills the same positions at every temperature, T -> 0 approaches greedy decoding, and nothing collapses
on the way (when rules saw tempered entropies, everything looked certain near 0 and was filled at once: 0 of 100 boards of the 4x4 world were valid at T = 0.12 and below).
Per cent right, with Wilson's 95 % interval.

## 4x4 Sudoku, unconditional, exact world: valid boards of {options.boards}

{exact}

## `sudoku`, puzzles with 27.1 givens: solved

{solving}

{priced}""")
    print(options.out.read_text())


if __name__ == "__main__":
    main()
