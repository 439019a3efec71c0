"""From new weights of `sudoku` to everything that depends on them: head, tables, doubt, charges, calibration, and every page that prints their numbers.

    python experiments/flagship.py [--weights FILE] [--run runs/flagship] [--lists FOLDER] [--only STAGE ...] [--plan]

With --weights these take the place of the package's; without, the pages of those in the package are made again. Stages that do not wait for
each other run side by side, one thread each. What a stage did is in RUN/STAGE.log; one that ended well is not run again for the same weights,
and one that was killed goes on where it stopped. About five core-hours in all. --plan prints the stages and what each waits for.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from tqdm import tqdm

from pairmi.backbones.checkpoint import fingerprint, load_tensors

PACKAGE = Path("src/pairmi/weights")
OWN = ("sudoku-head", "sudoku-tables")  # for the weights that they were made for, and no others
TRAIN = "--batch 64 --hops 3 --edges 4 --reach 64 --last-reach 48 --decay 0.8 --rate 4e-3 --precision bfloat16 --threads 1"

RESULTS = (
    "--precision {precision} --validation 1000 --drawn-validation 500 --drafted 64 --test 1000 --puzzles 1000 --minimal 1000 --table 1000 "
    "--drawn 1000 --verified 1000 --timed 64 --rounds 3"
)

OTHERS = "--head {run}/draft.safetensors {run}/pair-mlp.safetensors --former {before}/sudoku-head.safetensors"  # heads to compare with

# Each stage: what it waits for, then its command; {run} is the folder, {before} where head and tables of the last weights are.
STAGES: dict[str, tuple[tuple[str, ...], str]] = {
    "labels-0": (
        (),
        "pairmi labels --out {run}/labels --states 31744 --positions 4 --shard 1024 --precision bfloat16 --threads 1 --part 0/2",
    ),
    "labels-1": (
        (),
        "pairmi labels --out {run}/labels --states 31744 --positions 4 --shard 1024 --precision bfloat16 --threads 1 --part 1/2",
    ),
    "states": ((), "pairmi labels --out {run}/states --states 6144 --only test --precision bfloat16 --threads 1"),
    "states-mi": ((), "pairmi labels --out runs/coupling/test-states --states 1536 --only test --seed 24 --threads 1"),
    "head": (
        ("labels-0", "labels-1"),
        f"pairmi train head --labels {{run}}/labels --run {{run}}/head --steps 3200 --layers 10 12 14 16 {TRAIN} "
        f"--start {{before}}/sudoku-head.safetensors --out {PACKAGE}/sudoku-head.safetensors",
    ),
    "draft": (  # of a head: its rules choose the sets that tables learn from
        ("labels-0", "labels-1"),
        f"pairmi train head --labels {{run}}/labels --limit 6144 --run {{run}}/draft --steps 400 --layers 10 12 14 16 {TRAIN} "
        "--start {before}/sudoku-head.safetensors --out {run}/draft.safetensors",
    ),
    "tables": (
        ("draft",),
        "pairmi train tables --head {run}/draft.safetensors --labels runs/coupling/labels --units 70 --run {run}/tables --steps 5000 --decay 0.6 "
        f"--layers 10 12 14 16 --precision bfloat16 --threads 1 --start {{before}}/sudoku-tables.safetensors --out {PACKAGE}/sudoku-tables.safetensors",
    ),
    "calibration": (("head",), "experiments/calibrations.py sudoku --no-check"),
    "checks": (("calibration",), "experiments/calibrations.py sudoku --check"),
    "doubt": (("tables", "head"), "experiments/coupling_doubt.py"),
    "charges": (("doubt",), "experiments/coupling_charges.py"),
    "pair-mlp": (  # the paper's, to compare with
        ("labels-0", "labels-1"),
        "pairmi train head --kind pair-mlp --labels {run}/labels --limit 4096 --augment 1 --run {run}/pair-mlp --steps 400 --decay 0.7 "
        "--rate 1e-3 --layers 16 --batch 64 --precision bfloat16 --threads 1 --out {run}/pair-mlp.safetensors",
    ),
    "head-page": (
        ("calibration", "states", "draft", "pair-mlp"),
        f"experiments/sudoku_head.py --labels {{run}}/states {OTHERS}",
    ),
    "buys": (("calibration", "draft", "pair-mlp"), f"experiments/head_buys.py --precision {{precision}} {OTHERS}"),
    "plain": (  # without hops, which variants begin with
        ("labels-0", "labels-1"),
        "pairmi train head --labels {run}/labels --limit 5120 --run {run}/plain --steps 1500 --layers 12 16 --batch 64 --decay 0.7 --rate 4e-3 "
        "--precision bfloat16 --threads 1 --out {run}/plain.safetensors",
    ),
    "ablation": (
        ("head", "states", "plain"),
        "experiments/head_ablation.py --labels {run}/labels --test {run}/states --precision bfloat16 --start {run}/plain.safetensors",
    ),
    "solving": (("calibration",), f"experiments/sudoku_results.py {RESULTS} --only minimal puzzles 'table 1'"),
    "generating": (("calibration", "doubt"), f"experiments/sudoku_results.py {RESULTS} --only generating"),
    "results": (("solving", "generating"), f"experiments/sudoku_results.py {RESULTS} --without looking"),
    "model": (("results",), "experiments/sudoku_model.py --precision {precision} --count 1000 --boards 1000 --few 100 --listed 100"),
    "curve": (("doubt",), "experiments/coupling_curve.py"),
    "coupling": (("charges", "states-mi"), "experiments/coupling.py --boards 200 --priced 100 --exact 16 --verified 100 --puzzles 100"),
    "sweep": (("doubt",), "experiments/coupling_sweep.py"),
    "coupling-page": (("coupling", "curve", "sweep"), "experiments/coupling.py --page"),
    "price": (("checks", "charges"), "experiments/price_frontiers.py generating solving"),
    "gain": (("price",), "experiments/price_frontiers.py --gain"),
    "price-page": (("gain",), "experiments/price_frontiers.py --page"),
    "temperature": (("charges", "calibration"), "experiments/temperature.py --puzzles 40 --drafted 40"),
    "race": (("charges", "calibration"), "experiments/race_picture.py"),
    "explorer": (("charges", "calibration"), "experiments/explorer_pictures.py"),
}


def installed(weights: Path | None, run: Path) -> str:
    """Put new weights into the package, keep the head and tables of the old ones aside; the fingerprint of what is there now."""
    before, there = run / "before", PACKAGE / "sudoku.safetensors"
    before.mkdir(parents=True, exist_ok=True)
    for name in OWN:
        if not (before / f"{name}.safetensors").is_file():
            shutil.copy(PACKAGE / f"{name}.safetensors", before)
    if weights is not None and fingerprint(load_tensors(weights)[0]) != fingerprint(load_tensors(there)[0]):
        shutil.copy(weights, there)
        for name in OWN:
            (PACKAGE / f"{name}.safetensors").unlink(missing_ok=True)
    return fingerprint(load_tensors(there)[0])


def command(name: str, run: Path, lists: Path | None = None, precision: str = "bfloat16") -> list[str]:
    """The words of a stage."""
    program, *words = shlex.split(STAGES[name][1].format(run=run, before=run / "before", precision=precision))
    words += ["--lists", str(lists)] if name == "model" and lists else []
    start = ["-c", "import sys; from pairmi.cli import main; sys.exit(main())"] if program == "pairmi" else [program]
    return [sys.executable, *start, *words]


def carried_out(name: str, run: Path, weights: str, lists: Path | None = None, precision: str = "bfloat16") -> float:
    """The seconds that a stage took; 0 where it had ended well for these weights."""
    done, began = run / f"{name}.done", time.monotonic()
    if done.is_file() and done.read_text() == weights:
        return 0.0
    with (run / f"{name}.log").open("ab") as log:
        subprocess.run(command(name, run, lists, precision), check=True, stdout=log, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"})
    done.write_text(weights)
    return time.monotonic() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, help="of a model of the same shape, such as denoiser.py --out wrote")
    parser.add_argument("--run", type=Path, default=Path("runs/flagship"), help="folder for labels, checkpoints and logs")
    parser.add_argument("--only", nargs="+", choices=STAGES, default=list(STAGES), metavar="STAGE", help="these, whatever they wait for")
    parser.add_argument("--lists", type=Path, help="folder of public lists of hard puzzles, for docs/sudoku-model.md")
    parser.add_argument(
        "--precision", default="bfloat16", choices=("float32", "bfloat16"), help="of the pages of results: float32 where bfloat16 is slow"
    )
    parser.add_argument("--lanes", type=int, default=2, help="stages at a time")
    parser.add_argument("--plan", action="store_true", help="run nothing")
    options = parser.parse_args()
    if options.plan:
        for name in options.only:
            print(f"{name}: after {', '.join(STAGES[name][0]) or 'nothing'}\n    {STAGES[name][1]}")
        return 0
    weights, waiting, running, failed = installed(options.weights, options.run), list(options.only), dict[Future, str](), list[str]()
    with ThreadPoolExecutor(options.lanes) as lanes, tqdm(total=len(waiting), desc="stages") as bar:
        while waiting or running:
            blocked = {*waiting, *running.values(), *failed}
            ready = [name for name in waiting if not blocked & {*STAGES[name][0]}]
            for name in ready[: options.lanes - len(running)]:
                waiting.remove(name)
                running[lanes.submit(carried_out, name, options.run, weights, options.lists, options.precision)] = name
            if not running:
                break
            for one in wait(running, return_when=FIRST_COMPLETED).done:
                name, error = running.pop(one), one.exception()
                failed += [name] if error else []
                bar.write(f"{name}: {f'failed, see {options.run}/{name}.log' if error else f'{one.result():.0f} s'}")
                bar.update()
    if failed or waiting:
        print(f"flagship: {', '.join(failed)} failed; not run: {', '.join(waiting) or 'nothing'}", file=sys.stderr)
    return 1 if failed or waiting else 0


if __name__ == "__main__":
    sys.exit(main())
