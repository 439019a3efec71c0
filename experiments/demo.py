"""`make demo`, or `python experiments/demo.py`: hard puzzles solved with the weights in the package, and what the exact 4x4 world says of the rules."""

import sys

import torch

from pairmi import api
from pairmi.backbones.tabular import Tabular
from pairmi.bench import report, worlds
from pairmi.bench.exact import evaluate
from pairmi.loading import load
from pairmi.spec import rule
from pairmi.tasks.sudoku.puzzles import TEST, unique_puzzles
from studies.sudoku_files import to_board

RULES = ("sequential", "top-k:k=4", "threshold:threshold=0.99", "eb:budget=0.05", "mi-guided", "mi-guided:budget=0.3")
SMALL = (
    "sequential",
    "top-k:k=4",
    "threshold:threshold=0.99",
    "eb:budget=0",
    "mi-guided:budget=1.4",
    "mi-bound:budget=0,order=highest-entropy",
)


def sudoku(count: int = 4, name: str = "sudoku") -> None:
    """Solve puzzles by several rules; show boards, passes and the strongest dependences."""
    model = load(name)
    puzzles = unique_puzzles(count, TEST + 77)
    records = []
    for spec in RULES:
        filled = api.decode(model, puzzles.canvases, spec, greedy=True, steps=False)
        assert isinstance(filled, list)
        right = [bool((one.tokens == solution).all()) for one, solution in zip(filled, puzzles.solutions, strict=True)]
        records.append({"rule": spec, "solved": f"{sum(right)} of {count}", "passes": sum(one.passes for one in filled) / count})
        if spec == "sequential":
            for canvas, one, good in zip(puzzles.canvases, filled, right, strict=True):
                left, mid = to_board(canvas).splitlines(), to_board(one.tokens).splitlines()
                print("\n".join(f"{a}      {b}" for a, b in zip(left, mid, strict=True)), "\nsolved\n" if good else "\nNOT solved\n")
    print(report.table(records, ("rule", "solved", "passes")))
    found = api.mutual_information(model, [puzzles.canvases[0]])[0]
    within = float(found.bound.max())
    print(f"\nWhat depends on what in the first puzzle ({found.rows} rows; within {within:.2g} nats of the full probe):")
    for i, j, nats in found.strongest(5):
        print(f"  {model.task.position(i)} - {model.task.position(j)}  {nats:.3f} nats")


def small_world() -> None:
    """The exact output distribution of several rules on 4x4 Sudoku from the empty board, and a map of mutual information."""
    model = load("sudoku4")
    assert isinstance(model.backbone, Tabular)
    empty = torch.full((16,), model.vocab.size)
    records = []
    for spec in SMALL:
        for verify in (False, True):
            records.append(
                {"rule": spec, "verified": verify} | vars(evaluate(model.backbone, empty, rule(worlds.full_probe(spec), model), verify))
            )
    print(report.table(records, ("rule", "verified", "passes", "rows", "valid", "kl")))
    first = api.mutual_information(model, [torch.cat([torch.tensor([0]), empty[1:]])])[0].matrix
    print("\nMutual information (nats) of r1c2 with every other cell, when r1c1 = 1:")
    for row in first[1].view(4, 4).tolist():
        print("  " + "  ".join(f"{value:.2f}" for value in row))


def main() -> int:
    """Both parts."""
    print("== 9x9 Sudoku, the model in the package ==\n")
    sudoku()
    print("\n== 4x4 Sudoku, the exact world of 288 boards ==\n")
    small_world()
    return 0


if __name__ == "__main__":
    sys.exit(main())
