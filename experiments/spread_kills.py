"""Labelling on Ray whose workers and whose driver are killed (SIGKILL) at random moments: is the store the same in the end?

    python experiments/spread_kills.py [--kills 20]

Every second kill is a worker's, which Ray replaces while the run goes on; the others are the driver's, after which the same command
is started again. Prints what happened, and exits with 1 unless the store is in the end, byte for byte, the one that one undisturbed
process makes.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pairmi.backbones.transformer import Transformer, TransformerConfig
from pairmi.mi.probe import Probe
from pairmi.model import Model
from pairmi.spread.local import Local
from pairmi.spread.ray import Ray
from pairmi.spread.units import Engine
from pairmi.store import read_store, shards
from pairmi.training.labels import make_labels
from pairmi.training.states import State, grid_name

SHARD, WORKERS = 4, 2


def cheap_model() -> Model:
    """A tiny transformer with the same random weights in every process."""
    torch.manual_seed(0)
    transformer = Transformer(TransformerConfig(symbols="abcd", length=8, width=16, depth=1, heads=2)).eval().requires_grad_(False)
    for parameter in transformer.parameters():
        torch.nn.init.normal_(parameter, std=0.8)
    return Model(transformer, "cheap")


@dataclass(frozen=True)
class Masks:
    """Random sequences under random masks, at leisure, so that kills fall into the middle."""

    pause: float = 0.0

    def about(self) -> dict[str, Any]:
        return {"name": "masks"}

    def draw(self, model: Model, seed: int, shard: int, count: int) -> list[State]:
        time.sleep(self.pause)
        assert model.length is not None
        rng = torch.Generator().manual_seed(1_000_003 * seed + shard)
        complete = torch.randint(model.vocab.size, (count, model.length), generator=rng)
        hidden = torch.rand(complete.shape, generator=rng) < torch.rand(count, 1, generator=rng)
        hidden[:, :2] = True
        tokens = complete.masked_fill(hidden, model.vocab.size)
        return [State(row, "uniform", "", grid_name(grid)) for row, grid in zip(tokens, complete, strict=True)]


def make(folder: Path, units: int, engine: Engine, pause: float) -> None:
    make_labels(cheap_model(), Masks(pause), folder, SHARD * units, probe=Probe(floor=0.0), shard=SHARD, engine=engine, quiet=True)


def processes() -> dict[int, tuple[int, str]]:
    """Every process of this machine: its parent and its command line."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                found[int(entry.name)] = parent, (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            except (OSError, IndexError):  # it has just ended
                continue
    return found


def family(ancestor: int) -> dict[int, str]:
    """The descendants of a process with their command lines."""
    everybody = processes()
    inside = {ancestor}
    while more := {pid for pid, (parent, _) in everybody.items() if parent in inside} - inside:
        inside |= more
    return {pid: everybody[pid][1] for pid in inside - {ancestor}}


def gone(pids: set[int], patience: float) -> float:
    """Seconds until none of these processes is left (those that wait to be buried do not count)."""
    start = time.monotonic()
    while left := {pid for pid, (_, command) in processes().items() if pid in pids and command}:
        if time.monotonic() - start > patience:
            sys.exit(f"left over after {patience:.0f} seconds: {left}")
        time.sleep(0.1)
    return time.monotonic() - start


@dataclass
class Disturbed:
    """A run of the driver in a process of its own."""

    folder: Path
    units: int
    pause: float

    def __post_init__(self) -> None:
        arguments = ["--child", str(self.folder), "--units", str(self.units), "--pause", str(self.pause)]
        self.process = subprocess.Popen(
            [sys.executable, __file__, *arguments], stdout=subprocess.DEVNULL, env=os.environ | {"RAY_worker_niceness": "0"}
        )

    def progressed(self, more: int) -> bool:
        """Wait until `more` units have been finished; False = it was the end."""
        goal = len(shards(self.folder)) + more
        while len(shards(self.folder)) < goal:
            if self.process.poll() is not None:
                return False
            time.sleep(0.02)
        return True


def disturb(folder: Path, units: int, pause: float, kills: int, chance: random.Random) -> tuple[int, set[int]]:
    """Kill, alternately a worker and the driver, until there were enough; then let it finish. How many hit, and the orphans of drivers."""
    done, orphans = 0, set[int]()
    while True:
        before = {file: file.stat().st_mtime_ns for file in shards(folder)}
        run = Disturbed(folder, units, pause)
        if done < kills and run.progressed(1):
            time.sleep(chance.uniform(0, 2 * pause))
            workers = [pid for pid, command in family(run.process.pid).items() if command.startswith("ray::RayWorker")]
            os.kill(victim := chance.choice(workers), signal.SIGKILL)
            done += 1
            print(f"kill {done}: worker {victim}, {len(shards(folder))} of {units} units finished", flush=True)
            if done < kills and run.progressed(1):
                time.sleep(chance.uniform(0, 2 * pause))
                orphans |= set(family(run.process.pid))
                run.process.kill()
                done += 1
                print(f"kill {done}: driver {run.process.pid}, {len(shards(folder))} of {units} units finished", flush=True)
        code = run.process.wait()
        assert all(file.stat().st_mtime_ns == moment for file, moment in before.items()), "a finished unit was made again"
        if code == 0:
            return done, orphans


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--units", type=int, help="default: 6 for each kill")
    parser.add_argument("--pause", type=float, default=0.2, help="seconds that a unit takes at least")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--orphans", action=argparse.BooleanOptionalAction, default=True, help="wait until nothing is left of killed drivers"
    )
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    units = options.units or 6 * options.kills
    if options.child:
        make(options.child, units, Ray(WORKERS), options.pause)
        return
    with tempfile.TemporaryDirectory() as scratch:
        killed, whole = Path(scratch, "killed"), Path(scratch, "whole")
        done, orphans = disturb(killed, units, options.pause, options.kills, random.Random(options.seed))
        make(whole, units, Local(), 0.0)
        contents = [{file.name: file.read_bytes() for file in shards(folder)} for folder in (killed, whole)]
        states = len(read_store(killed)[0])
    if options.orphans:
        print(f"the {len(orphans)} orphans of killed drivers were gone {gone(orphans, 300):.0f} s after the end")
    same = contents[0] == contents[1]
    print(
        f"{done} kills; {len(contents[0])} of {units} units, {states} states; {'the same bytes' if same else 'NOT the same bytes'} as undisturbed"
    )
    sys.exit(not (same and done == options.kills and states == SHARD * units))


if __name__ == "__main__":
    main()
