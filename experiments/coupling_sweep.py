"""Choose the limits of doubt: members that wait (defer) and those that come last in a draft (late), on other draws than are reported.

    python experiments/coupling_sweep.py [--boards 64] [--only plain verified]

Plain: validity over passes; verified: passes and rows. Boards that are in --records are not decoded again; the page prints them all
(`python experiments/coupling.py --page`), and `python experiments/coupling.py` reports the chosen ones on other boards.
"""

import argparse
from pathlib import Path

import torch
from tqdm import tqdm

from coupling import SETS, made
from pairmi.bench.ledger import Ledger
from pairmi.loading import load

UNIT = 32
SEED = 24_000_001  # apart from what is reported
PLAIN = tuple(f"{SETS[4]},draw=coupled,defer={limit}" for limit in (0.003, 0.006, 0.01, 0.02))
VERIFIED = tuple(
    f"{SETS[4]},draw=coupled,defer={limit},late={late}" for limit, late in ((0.05, 0.3), (0.05, 0.2), (0.02, 0.3), (0.1, 0.3), (0.05, 0.45))
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=("plain", "verified"), default=("plain", "verified"))
    parser.add_argument("--boards", type=int, default=64)
    parser.add_argument("--having", nargs="+", help="only rules with one of these in their specifications")
    parser.add_argument("--records", type=Path, default=Path("experiments/records/coupling.jsonl"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    ledger, model = Ledger(options.records), load("sudoku", precision="bfloat16")
    empty = torch.full((81,), model.vocab.size)
    for what, specs in (("plain", PLAIN), ("verified", VERIFIED)):
        for spec in specs if what in options.only else ():
            if options.having is None or any(part in spec for part in options.having):
                for first in tqdm(range(0, options.boards, UNIT), desc=spec):
                    part = range(first, min(first + UNIT, options.boards))
                    found = made(
                        model, ledger, spec, {"seed": SEED, "verify": what == "verified"}, part, [empty] * len(part), f"sweep {what}"
                    )
                mean = {name: sum(map(float, found[name])) / len(found[name]) for name in ("valid", "passes", "rows")}
                print(spec, {name: round(value, 3) for name, value in mean.items()}, flush=True)


if __name__ == "__main__":
    main()
