"""The Sudoku model's own figures: puzzles solved, boards generated, calibration. Results go to docs/sudoku-model.md.

    python experiments/sudoku_model.py [--lists FOLDER]
    python experiments/sudoku_model.py --model runs/new.safetensors --only minimal test

FOLDER may hold public lists of hard puzzles (*.txt, one puzzle a line). Every finished line is kept in --records, so that an
interrupted run goes on where it stopped; with --only some lines are measured and printed, and no page is written.
"""

import argparse
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from pairmi.backbones.identity import identify
from pairmi.bench import report
from pairmi.bench.ledger import Ledger
from pairmi.bench.stats import wilson
from pairmi.commit import Sampling
from pairmi.loading import load
from pairmi.model import Model
from pairmi.provenance import provenance
from pairmi.tasks.sudoku.puzzles import TEST, TRAINING, Puzzles, complete_grids, minimal_puzzles, paper_puzzles
from pairmi.tasks.sudoku.solver import difficulty, solve
from pairmi.tasks.sudoku.techniques import Technique
from pairmi.training.states import corrupt
from studies.board_measures import measure, settings_of
from studies.boards import Boards, make_boards
from studies.sudoku_beliefs import calibration, histogram
from studies.sudoku_files import read_puzzles

GREEDY, DRAWN = Sampling(greedy=True), Sampling()
SUREST = "most confident first, argmax"
Line = tuple[Boards, str, Sampling]  # what is decoded, by which rule, how


def public_list(file: Path, limit: int) -> Puzzles:
    """The first puzzles of a list, with their solutions."""
    canvases = [record.canvas for _, record in zip(range(limit), read_puzzles(file.open()), strict=False)]
    solutions = [torch.from_numpy(solve(canvas.numpy())[0]) for canvas in canvases]
    return Puzzles(torch.stack(canvases), torch.stack(solutions))


def by_difficulty(puzzles: Puzzles, good: str) -> list[dict[str, Any]]:
    """What was solved of each grade, and of what is beyond in thirds by the guesses of a backtracking solver; `good` has a 1 for each."""
    guesses = torch.tensor([difficulty(canvas) for canvas in puzzles.canvases.numpy()])
    solved = torch.tensor([letter == "1" for letter in good])
    groups = {str(grade): torch.nonzero(puzzles.grades == grade)[:, 0] for grade in Technique}
    beyond = groups[str(Technique.BEYOND)]
    names = ("fewest", "some", "most")
    thirds = beyond[guesses[beyond].argsort(stable=True)].tensor_split(len(names))
    groups |= {f"{Technique.BEYOND}, {name} guesses": third for name, third in zip(names, thirds, strict=True)}
    table = []
    for name, rows in groups.items():
        if len(rows):
            low, high = wilson(int(solved[rows].sum()), len(rows))
            record = {
                "needs": name,
                "puzzles": len(rows),
                "solved": float(solved[rows].double().mean()),
                "interval": f"{low:.3f}-{high:.3f}",
            }
            spread = f"{int(guesses[rows].min())}-{int(guesses[rows].max())}"
            table.append(record | {"mean givens": float(puzzles.givens[rows].double().mean()), "guesses": spread})
    return table


def graded(puzzles: Puzzles, record: dict[str, Any]) -> str:
    """The table by difficulty of a measured line."""
    columns = ("needs", "puzzles", "solved", "interval", "mean givens", "guesses")
    return report.table(by_difficulty(puzzles, record["each"]["good"]), columns)


def disjoint(*tests: Puzzles) -> None:
    """Stop if a test grid is among the training grids."""
    tested = {row.numpy().tobytes() for puzzles in tests for row in puzzles.solutions}
    overlap = len({row.numpy().tobytes() for row in complete_grids(100_000, TRAINING)} & tested)
    assert overlap == 0, f"{overlap} test grids are among the training grids"


def lines(options: argparse.Namespace, minimal: Puzzles, test: Puzzles) -> dict[str, Line]:
    """What is measured, by name; with --only, what begins with one of these words."""
    few = options.few
    named: dict[str, Line] = {
        f"minimal, {SUREST}": (Boards("minimal", "test", minimal.canvases, minimal.solutions), "sequential", GREEDY),
        f"test, {SUREST}": (Boards("puzzles", "test", test.canvases, test.solutions), "sequential", GREEDY),
        "generate, most confident first": (make_boards("empty", options.boards), "sequential", DRAWN),
        "test, temperature 1": (make_boards("puzzles", few), "sequential", DRAWN),
        "test, largest margin first, argmax": (make_boards("puzzles", few), "sequential:by=margin", GREEDY),
    }
    for file in sorted(options.lists.glob("*.txt")) if options.lists else []:
        listed = public_list(file, options.listed)
        name = f"{file.stem} (first {len(listed.canvases)}; givens {histogram(listed.givens)}), argmax"
        named[name] = (Boards(file.stem, "public", listed.canvases, listed.solutions), "sequential", GREEDY)
    return {name: line for name, line in named.items() if not options.only or name.startswith(tuple(options.only))}


def measured(model: Model, line: Line, ledger: Ledger) -> dict[str, Any]:
    """A line from the ledger, or decoded now."""
    record = ledger.measured(settings_of(model, *line), lambda: measure(model, *line))
    return record | {"interval": f"{record['low']:.3f}-{record['high']:.3f}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="sudoku")
    parser.add_argument("--lists", type=Path)
    parser.add_argument("--count", type=int, default=1000, help="test puzzles")
    parser.add_argument("--listed", type=int, default=100, help="puzzles of each list")
    parser.add_argument("--few", type=int, default=100, help="boards for what is only reported beside")
    parser.add_argument("--boards", type=int, default=1000, help="to generate from nothing")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="the lines that begin with one of these words")
    parser.add_argument("--precision", default="bfloat16", choices=("float32", "bfloat16"), help="of the matrix products")
    parser.add_argument("--records", type=Path, help="default: experiments/records/results-PRECISION.jsonl")
    parser.add_argument("--out", type=Path, default=Path("docs/sudoku-model.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = load(options.model, precision=options.precision)
    ledger = Ledger(options.records or Path("experiments/records") / f"results-{options.precision}.jsonl")
    minimal, test = minimal_puzzles(options.count, TEST), paper_puzzles(options.count, TEST)
    disjoint(minimal, test)
    todo = lines(options, minimal, test)
    done = {what: measured(model, line, ledger) | {"what": what} for what, line in tqdm(todo.items(), desc="sudoku model")}
    table = report.table(list(done.values()), ("what", "boards", "quality", "interval", "passes"))
    tables = {f"{name}, {SUREST}": puzzles for name, puzzles in (("minimal", minimal), ("test", test))}
    shown = [graded(puzzles, done[name]) for name, puzzles in tables.items() if name in done]
    if options.only:
        print("\n\n".join([table, *shown]))
        return
    rng = torch.Generator().manual_seed(TEST)
    noisy = corrupt(test.solutions, torch.linspace(0.05, 1, len(test.solutions)), model.vocab.size, rng)
    curves = {
        "test puzzles": calibration(model, test.canvases, test.solutions),
        "uniform masks": calibration(model, noisy, test.solutions),
    }
    draw_calibration(curves, options.out.parent / "figures" / "sudoku_calibration.png")
    text = page(
        f"--count {options.count} --boards {options.boards} --few {options.few} --listed {options.listed}",
        identify(model),
        options.precision,
        minimal,
        test,
        [table, *shown],
        curves,
    )
    options.out.write_text(text)
    print(text)


def page(
    how: str, weights: str, precision: str, minimal: Puzzles, test: Puzzles, tables: list[str], curves: dict[str, dict[str, Any]]
) -> str:
    """The whole text."""
    about = ", ".join(f"{key} {value}" for key, value in provenance().items())
    return f"""# The Sudoku model, measured

Printed by `python experiments/sudoku_model.py {how} --lists FOLDER` ({about}; weights {weights}, matrix products in {precision}).
Quality is the fraction of puzzles filled exactly as their only solution says, or of generated boards that obey the rules; the interval is
Wilson's, 95 %. Test puzzles: {len(test.canvases)}, each with a proved unique solution, givens {histogram(test.givens)} (mean
{float(test.givens.double().mean()):.2f}). Minimal puzzles: {len(minimal.canvases)} of which no given can be left out, givens
{histogram(minimal.givens)} (mean {float(minimal.givens.double().mean()):.2f}), as many of each difficulty as of another. None of
the grids is among the training grids. Decoding is one cell at a time.

{tables[0]}

## By difficulty

The hardest technique that a puzzle needs: singles (naked and hidden), locked candidates, subsets (naked and hidden, of any size), or more
than these; what is beyond in thirds by the symbols that a plain backtracking solver tries in vain. Minimal puzzles:

{tables[1]}

The test puzzles with 27.1 givens:

{tables[2]}

## Calibration

Expected calibration error of the likeliest digit (15 bins): {curves["test puzzles"]["ece"]:.4f} on the empty cells of the test puzzles
({curves["test puzzles"]["cells"]} cells), {curves["uniform masks"]["ece"]:.4f} under uniform masks
({curves["uniform masks"]["cells"]} cells).

![calibration](figures/sudoku_calibration.png)
"""


def draw_calibration(curves: dict[str, dict[str, Any]], file: Path) -> None:
    plt = report.pyplot()
    figure, axis = plt.subplots(figsize=(4.5, 4.2), layout="constrained")
    axis.plot([0, 1], [0, 1], color="0.6", lw=1, ls="--", label="perfect")
    for (name, curve), (color, marker) in zip(curves.items(), (("#0072B2", "o"), ("#D55E00", "s")), strict=True):
        axis.plot(curve["confidence"], curve["accuracy"], color=color, marker=marker, ms=5, label=f"{name}, ECE {curve['ece']:.4f}")
    axis.set(xlabel="probability of the likeliest digit", ylabel="how often it is right", xlim=(0, 1.02), ylim=(0, 1.02))
    axis.grid(alpha=0.25)
    axis.legend(frameon=False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
