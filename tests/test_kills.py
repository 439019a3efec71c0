"""Kills (SIGKILL) at every place where something is written: the same command, started again, ends as if nothing had happened.

Run as a program it does the killing: each kill is a forked child that dies at one named place.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from pairmi.backbones.tabular import Tabular
from pairmi.bench.ledger import Ledger
from pairmi.mi.probe import Probe
from pairmi.model import Model
from pairmi.tasks.tables import WORLDS
from pairmi.training.labels import make_labels
from pairmi.training.loop import fit
from pairmi.training.states import State, grid_name
from training.test_loop import job, records, same

STEPS: dict[str, Any] = {"steps": 8, "warmup": 1, "decay": 0.4, "save_every": 2, "evaluate_every": 2, "quiet": True}


class Bits:
    """Random bits of which the first two are hidden."""

    def about(self) -> dict[str, Any]:
        return {"name": "bits"}

    def draw(self, model: Model, seed: int, shard: int, count: int) -> list[State]:
        complete = torch.randint(2, (count, 3), generator=torch.Generator().manual_seed(1000 * seed + shard))
        return [State(row.masked_fill(torch.arange(3) < 2, 2), "uniform", "", grid_name(row)) for row in complete]


def train(folder: Path) -> None:
    fit(job(average=0.9), folder, **STEPS)


def label(folder: Path) -> None:
    world = WORLDS["xor"]()
    model = Model(Tabular(world.support, world.weights, world.symbols), "xor")
    make_labels(model, Bits(), folder, 16, probe=Probe(floor=0.0), shard=4, quiet=True)


def bench(folder: Path) -> None:
    ledger = Ledger(folder / "records.jsonl")
    for number in range(4):
        ledger.measured({"number": number}, lambda: {"square": number**2})  # noqa: B023 (called at once)


def trained(killed: Path, whole: Path) -> bool:
    files = ("checkpoint.safetensors", "stable.safetensors")
    return all(same(killed / file, whole / file) for file in files) and records(killed) == records(whole)


def labelled(killed: Path, whole: Path) -> bool:
    first, second = ({file.name: file.read_bytes() for file in folder.glob("*.parquet")} for folder in (killed, whole))
    return len(first) == 4 and first == second


def benched(killed: Path, whole: Path) -> bool:
    first, second = ([json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()] for folder in (killed, whole))
    return first == second


JOBS: dict[str, tuple[Callable[[Path], None], Callable[[Path, Path], bool]]] = {
    "train": (train, trained), "label": (label, labelled), "bench": (bench, benched),
}  # fmt: skip
# a file is written, synchronised and put into its place; a record is added: before or after that, and for the how-manieth time
MOMENTS = (("fsync", False), ("replace", False), ("replace", True))
PLACES = [("train", *moment, n) for moment in MOMENTS for n in (1, 2, 3, 4)]
PLACES += [("label", *moment, n) for moment in MOMENTS for n in (1, 2, 3)]
PLACES += [("bench", "add", after, n) for after in (False, True) for n in (1, 2, 3)]


def deadly(call: Callable[..., Any], after: bool, number: int) -> Callable[..., Any]:
    """The same, but the process dies around the call of this number."""
    left = iter(range(number - 1, -1, -1))

    def once(*arguments: Any) -> Any:
        last = next(left) == 0
        if last and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        done = call(*arguments)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    return once


def kill(name: str, call: str, after: bool, number: int, folder: Path) -> bool:
    """Whether a child that does this job died at this place."""
    child = os.fork()
    if not child:
        where = Ledger if call == "add" else os
        setattr(where, call, deadly(getattr(where, call), after, number))
        JOBS[name][0](folder)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def finished(folder: Path) -> dict[str, Any]:
    """What is done and may not be done again: shards by when they were written, records by what they say."""
    shards = {file.name: file.stat().st_mtime_ns for file in folder.glob("*.parquet")}
    return shards | {line: True for file in folder.glob("records.jsonl") for line in file.read_text().splitlines()}


def killed_everywhere(scratch: Path) -> Iterator[dict[str, Any]]:
    """One line a kill: whether it hit, and whether the second start ended as if there had been none."""
    for name, (work, _) in JOBS.items():
        work(scratch / name)
    for number, place in enumerate(PLACES):
        work, equal = JOBS[place[0]]
        folder = scratch / str(number)
        folder.mkdir()
        hit = kill(*place, folder)
        before = finished(folder)
        work(folder)
        kept, left = before.items() <= finished(folder).items(), [file.name for file in folder.glob(".*.part")]
        yield {"place": place, "hit": hit, "kept": kept, "same": equal(folder, scratch / place[0]), "left": left}


def test_over_twenty_kills_at_different_places_lose_nothing(tmp_path: Path) -> None:
    where = {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # as pytest finds the experiments
    run = subprocess.run([sys.executable, __file__, str(tmp_path)], capture_output=True, text=True, check=False, env=os.environ | where)
    assert run.returncode == 0, run.stderr
    kills = [json.loads(line) for line in run.stdout.splitlines()]
    assert len({tuple(one["place"]) for one in kills}) == len(PLACES) >= 20
    for one in kills:
        assert one["hit"] and one["kept"] and one["same"] and not one["left"], one  # noqa: PT018 (the whole line says which)


if __name__ == "__main__":
    torch.set_num_threads(1)  # a forked child has no thread pool
    for line in killed_everywhere(Path(sys.argv[1])):
        print(json.dumps(line), flush=True)
