"""Digests of what every rule gives, plain and verified, drawn and greedy: a change of the core that should change nothing is held to them.

`python experiments/same_results.py --write` stores them beside this file, without it they are compared. On a CPU in float32.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from tqdm import tqdm

import pairmi
from pairmi.selectors.catalogue import CATALOGUE

FILE = Path(__file__).with_name("same_results.json")
WORLDS = ("sudoku4", "markov", "potts", "table", "xor", "permutations")
PUZZLE = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"
OTHERS = {"mi-guided": "budget=0.03"}  # the default when the digests were made
CANVASES = {
    "sudoku": [PUZZLE, 81 * "."],
    "protein": ["MKT" + 12 * "." + "VLA", 20 * ".", "M.K.T.A.Y.I.A.K.Q.R"],
}
SETTINGS = {
    "sudoku": {"mi-bound": "budget=0.06,entropy_weight=0.02,penalty=4", "mi-guided": "budget=0.1", "eb": "budget=0.1"},
    "protein": {"mi-bound": "budget=0.3", "mi-guided": "budget=2", "eb": "budget=2", "threshold": "threshold=0.4", "top-k": "k=4"},
}
MODES = {"drawn": {}, "greedy": {"greedy": True}, "verified": {"verify": True}, "verified greedy": {"verify": True, "greedy": True}}


def digests(models: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """A name and a digest of tokens, passes and rows for each model, rule and way of drawing."""
    for name in models:
        model = pairmi.load(name)
        canvases = CANVASES.get(name) or [model.length * ".", model.vocab.symbols[0] + (model.length - 1) * "."]
        for rule in CATALOGUE:
            options = SETTINGS.get(name, OTHERS).get(rule, "")
            for mode, how in MODES.items():
                for seed in (0, 1):
                    out = pairmi.decode(model, canvases, f"{rule}:{options}".rstrip(":"), seed=seed, steps=False, **how)
                    told = [(one.text, one.passes, one.rows) for one in out]
                    yield f"{name} {rule} {mode} {seed}", hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


def main() -> int:
    """Write, or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--models", nargs="+", default=[*WORLDS, *CANVASES])
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = dict(tqdm(digests(tuple(options.models))))
    if options.write:
        FILE.write_text(json.dumps(found, indent=0) + "\n")
        return 0
    stored = json.loads(FILE.read_text())
    known = {name: digest for name, digest in found.items() if name in stored}  # rules that are newer than the digests have none
    different = [name for name, digest in known.items() if stored[name] != digest]
    print(f"{len(known) - len(different)} of {len(known)} are the same bit by bit", *different, sep="\n  different: ")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
