"""The resumable training loop: a step is a function of (seed, step), so a killed run goes on and ends bit-identical."""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from torch import Tensor
from tqdm import tqdm

from pairmi.backbones.checkpoint import load_tensors, save_tensors, write_whole
from pairmi.types import PairmiError


@runtime_checkable
class Job(Protocol):
    """Something that can be trained step by step and put away between any two steps."""

    def about(self) -> dict[str, Any]:
        """Everything that its result depends on but the number of steps."""
        ...

    def tensors(self) -> dict[str, Tensor]:
        """Everything that it has learnt, live: writing into these restores it."""
        ...

    def advance(self, step: int, rate: float) -> float:
        """Do step number `step` at `rate` times the highest learning rate; return the loss."""
        ...

    def evaluate(self) -> dict[str, float]:
        """Figures on held-out data."""
        ...


def learning_rate(step: int, steps: int, warmup: int, decay: float) -> float:
    """Linear warm-up, constant, then linear decay to zero over the last `decay` of all steps."""
    return min(1.0, (step + 1) / max(1, warmup), (steps - step) / max(1.0, decay * steps))


def _resume(job: Job, file: Path, rates: list[float]) -> tuple[int, float]:
    """Restore `job`; the first step still to do and the seconds already spent."""
    saved, about = load_tensors(file)
    live, now = job.tensors(), json.loads(json.dumps(job.about()))
    if not {"job", "rates", "seconds"} <= about.keys():
        raise PairmiError(f"train: {file} is not a checkpoint of a training run; choose another --run or remove it")
    if about["job"] != now:
        names = [name for name in sorted({*now, *about["job"]}) if about["job"].get(name) != now.get(name)]
        raise PairmiError(
            f"train: {file} comes from another configuration (different: {', '.join(names)}); choose another --run or remove it"
        )
    done = about["rates"]
    if rates[: len(done)] != done:
        raise PairmiError(
            f"train: {file} has done {len(done)} steps of another learning-rate schedule; keep --steps, or choose another --run"
        )
    for name, tensor in live.items():
        tensor.copy_(saved[name])
    return len(done), about["seconds"]


def _keep_log(file: Path, steps: int) -> None:
    """Drop what was logged after the last checkpoint, so that no step stands twice."""
    if file.is_file():
        lines = [line for line in file.read_text().splitlines() if line.endswith("}") and json.loads(line)["step"] <= steps]
        write_whole(file, "".join(f"{line}\n" for line in lines).encode())


def fit(
    job: Job,
    run: Path,
    *,
    steps: int,
    warmup: int,
    decay: float,
    save_every: int,
    evaluate_every: int,
    quiet: bool = False,
    leads: bool = True,
) -> Path:
    """Train to the end, or go on from the last checkpoint in `run`; returns the final checkpoint.

    `run` gets `checkpoint.safetensors` (atomic), `log.jsonl` (one line per evaluation) and `stable.safetensors`, the last
    checkpoint before the learning rate falls: from there a longer schedule can go on. Of several processes that train together
    one leads: it alone writes and measures; the number of processes may change between two starts.
    """
    rates = [learning_rate(step, steps, warmup, decay) for step in range(steps)]
    file, log = run / "checkpoint.safetensors", run / "log.jsonl"
    start, spent = _resume(job, file, rates) if file.is_file() else (0, 0.0)
    if leads:
        _keep_log(log, start)
        run.mkdir(parents=True, exist_ok=True)
    began, recent = time.monotonic() - spent, 0.0
    bar = tqdm(range(start, steps), initial=start, total=steps, desc="train", unit="step", file=sys.stderr, disable=quiet or not leads)
    for step in bar:
        loss = job.advance(step, rates[step])
        recent = loss if step == start else 0.98 * recent + 0.02 * loss
        bar.set_postfix(loss=f"{recent:.4f}", refresh=False)
        done = step + 1
        if not leads:
            continue
        if done % evaluate_every == 0 or done == steps:
            _log(log, {"step": done, "seconds": round(time.monotonic() - began, 1), "rate": rates[step], "loss": loss} | job.evaluate())
        if done % save_every == 0 or done == steps:
            about = {"job": job.about(), "rates": rates[:done], "seconds": time.monotonic() - began}
            if done < steps and rates[done] == 1.0:
                save_tensors(run / "stable.safetensors", job.tensors(), about)
            save_tensors(file, job.tensors(), about)
    return file


def _log(file: Path, record: Mapping[str, int | float]) -> None:
    with open(file, "a") as out:
        out.write(json.dumps(record) + "\n")


def read_log(file: Path) -> list[dict[str, int | float]]:
    """The records of a run, in order."""
    return [json.loads(line) for line in file.read_text().splitlines()]
