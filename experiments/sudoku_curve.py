"""Puzzles solved over training compute: the weights of every stage, from the history of the repository, and of trainings that go on.

    python experiments/sudoku_curve.py [--count 500] [--onward STEPS=FILE[=NAME] ...] [--page]

Results go to docs/sudoku-training.md. --onward names the weights after so many more steps of 96 boards from those `twice as deep` (denoiser.py
--start FILE --depth 16). What is in --records is not measured again; --page measures nothing.
"""

import argparse
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from pairmi.bench import report
from pairmi.bench.ledger import Ledger
from pairmi.commit import Sampling
from pairmi.loading import load
from pairmi.provenance import provenance
from studies.board_measures import measure
from studies.boards import make_boards

WEIGHTS = "src/pairmi/weights/sudoku.safetensors"
BOARDS, CELLS = 96, 81  # of a step, of a board
PARAMETERS = {8: 1_587_872, 16: 3_162_816}  # by the number of blocks
TARGET, AIM, EASIER = 0.90, 0.95, 0.98  # of minimal puzzles, and of those with 27.1 givens
MISTAKES = "hard puzzles and mistakes"
KINDS = {"minimal": "minimal, solved", "puzzles": "27.1 givens, solved"}
COLUMNS = ("stage", "blocks", "steps", "PFLOP", "of each", *KINDS.values())


@dataclass(frozen=True)
class Stage:
    """Weights, and the steps that were spent on them with 8 and with 16 blocks."""

    name: str
    source: str  # a commit, with the path where it is not the package's, or a file
    shallow: int
    deep: int = 0

    def flops(self) -> float:
        """Six for each parameter, cell and board; attention is small."""
        return 6.0 * CELLS * BOARDS * (self.shallow * PARAMETERS[8] + self.deep * PARAMETERS[16])

    def file(self, folder: Path) -> Path:
        """The weights, taken out of the history if that is where they are."""
        if Path(self.source).is_file():
            return Path(self.source)
        commit, _, path = self.source.partition(":")
        file = folder / f"{commit}.safetensors"
        if not file.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            file.write_bytes(subprocess.run(["git", "show", f"{commit}:{path or WEIGHTS}"], check=True, capture_output=True).stdout)
        return file


STAGES = (
    Stage("random masks", "3880af4", 2800),
    Stage("along its own trajectories", "ccf4ba0", 5600),
    Stage("lingering where it is unsure", "11b7002", 8800),
    Stage("twice as deep", "9f039d8", 8800, 3400),
    Stage("longer, at a higher rate: in the package", "0029cfa:experiments/records/sudoku-longer.safetensors", 8800, 7650),
)


def solved(stage: Stage, options: argparse.Namespace) -> dict[str, Any]:
    """The share of each kind of puzzles that is solved one by one, argmax."""
    model, found = load(str(stage.file(options.work)), precision=options.precision), {}
    for kind in KINDS:
        measured = measure(model, make_boards(kind, options.count), "sequential", Sampling(greedy=True))
        found[kind] = {name: measured[name] for name in ("quality", "low", "high", "boards")}
    return found


def needed(lines: Sequence[Mapping[str, Any]], share: float, kind: str = "minimal") -> float:
    """PFLOP until so many puzzles are solved, if the unsolved go on to fall by a power of what was spent, as over these stages."""
    spent, left = np.log([one["PFLOP"] for one in lines]), np.log([1 - one[kind] for one in lines])
    slope, offset = np.polyfit(spent, left, 1)
    return float(np.exp((np.log(1 - share) - offset) / slope))


def line(found: Mapping[str, Any]) -> dict[str, Any]:
    """A stage as a line of the table, with the ends of its intervals."""
    stage = Stage(**found["settings"]["stage"])
    told = {"stage": stage.name, "blocks": 16 if stage.deep else 8, "steps": stage.shallow + stage.deep, "PFLOP": stage.flops() / 1e15}
    for kind, name in KINDS.items():
        one = found[kind]
        told |= {kind: one["quality"], f"{kind} low": one["low"], f"{kind} high": one["high"], "of each": one["boards"]}
        told[name] = f"{one['quality']:.3f} [{one['low']:.3f}, {one['high']:.3f}]"
    return told


def picture(lines: Sequence[Mapping[str, Any]], file: Path) -> None:
    """Unsolved puzzles over compute."""
    plt = report.pyplot()
    figure, axis = plt.subplots(figsize=(5.2, 3.6), layout="constrained")
    for (kind, name), color, marker in zip(KINDS.items(), ("#D55E00", "#0072B2"), "so", strict=True):
        value, low, high = (1 - np.array([one[key] for one in lines]) for key in (kind, f"{kind} low", f"{kind} high"))
        spent = [one["PFLOP"] for one in lines]
        axis.errorbar(
            spent, value, yerr=[value - high, low - value], color=color, marker=marker, ms=5, capsize=3, label=name.partition(",")[0]
        )
    axis.axhline(1 - TARGET, color="0.6", ls="--", lw=1, label=f"{TARGET:.0%} solved")
    axis.set(xscale="log", yscale="log", xlabel="training compute (PFLOP)", ylabel="puzzles not solved")
    axis.set_xticks((0.2, 0.5, 1, 2), labels=("0.2", "0.5", "1", "2"))
    axis.set_yticks((0.02, 0.05, 0.1, 0.2, 0.3), labels=("2 %", "5 %", "10 %", "20 %", "30 %"))
    axis.minorticks_off()
    axis.grid(alpha=0.25)
    axis.legend(frameon=False, fontsize=8)
    figure.savefig(file, dpi=150)
    plt.close(figure)


def page(lines: Sequence[Mapping[str, Any]]) -> str:
    """The whole text."""
    about = ", ".join(f"{key} {value}" for key, value in provenance().items())
    fitted = [one for one in lines if one["stage"] != STAGES[0].name]
    far = ", ".join(f"{share:.0%} at {needed(fitted, share):.1f} PFLOP" for share in (TARGET, AIM))
    return f"""# The Sudoku model over its training

Printed by `python experiments/sudoku_curve.py --count {lines[0]["of each"]}` ({about}).
Puzzles solved one by one (argmax, most confident first, matrix products in bfloat16) by the weights of every stage, over what they had cost: six
operations for each parameter, cell and board of a step of {BOARDS}. Intervals are Wilson's, 95 %. What the puzzles are: [the model](sudoku-model.md).

{report.table(lines, COLUMNS)}

![puzzles not solved over training compute](figures/sudoku_training.png)

`{MISTAKES}` goes on from the weights of `twice as deep`, which were `sudoku` then: six in ten followed puzzles are minimal and need subsets or more, and half of the rows begin again where the model was wrong
(`python experiments/denoiser.py --start sudoku --depth 16 --minimal 0.6 --needing subsets --again 0.5 --peak 0.35 --decay 1 --average 0.99 --precision bfloat16 --micro 48 --steps 1150`). The loss
of held-out minimal puzzles fell in it from 0.708 (step 150) to 0.685 nats a cell, but no more of them are solved.

What is in the package goes on from `twice as deep`, too: 1,800 steps at 0.6 of the usual rate, then 2,450 with the rate falling to 0; 64 of 96 rows follow trajectories, four in ten of
their puzzles minimal ones that need locked candidates or more, four in a hundred the empty board, and three in ten rows begin again where the model was wrong (`torchrun --nproc-per-node 2 experiments/denoiser.py -- --start
sudoku --depth 16 --minimal 0.4 --needing locked --again 0.3 --generating 0.04 --peak 0.6 --decay 0.576 --average 0.99 --precision bfloat16 --micro 16 --steps 4250`). The loss fell to 0.655, and more of the hardest are solved. Head,
tables, calibrations and all pages of new weights: `python experiments/flagship.py --weights FILE`.

**What it would take.** If the unsolved puzzles go on to fall by a power of the compute, as they did since training follows trajectories: minimal ones {far}; those with 27.1 givens
{EASIER:.0%} at {needed(fitted, EASIER, "puzzles"):.1f} PFLOP. A line through so few points of different recipes is a guess, and the last stage moved the first kind alone.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500, help="puzzles of each kind")
    parser.add_argument("--onward", nargs="*", default=[], metavar="STEPS=FILE[=NAME]")
    parser.add_argument("--precision", default="bfloat16", choices=("float32", "bfloat16"))
    parser.add_argument("--work", type=Path, default=Path("runs/history"), help="where weights of the history are put")
    parser.add_argument("--records", type=Path, default=Path("experiments/records/sudoku-training.jsonl"))
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page")
    parser.add_argument("--out", type=Path, default=Path("docs/sudoku-training.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    ledger, onward = Ledger(options.records), [[*one.split("="), MISTAKES][:3] for one in options.onward]
    stages = [*STAGES, *(Stage(name, file, 8800, 3400 + int(steps)) for steps, file, name in onward)]
    for stage in tqdm([] if options.page else stages, desc="stages"):
        ledger.measured({"stage": asdict(stage), "count": options.count}, lambda: solved(stage, options))  # noqa: B023 (called at once)
    lines = sorted((line(one) for one in ledger.found.values()), key=lambda one: one["PFLOP"])
    picture(lines, options.out.parent / "figures" / "sudoku_training.png")
    options.out.write_text(page(lines))
    print(options.out.read_text())


if __name__ == "__main__":
    main()
