"""The resumable training loop: a step is a function of (seed, step), so a killed run goes on and ends bit-identical."""

import fcntl
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor
from tqdm import tqdm

from pairmi.backbones.checkpoint import learnt, load_tensors, save_tensors, write_whole
from pairmi.provenance import provenance
from pairmi.types import PairmiError


@runtime_checkable
class Job(Protocol):
    """Something that can be trained step by step and put away between any two steps."""

    def about(self) -> dict[str, Any]:
        """Everything that its result depends on but the number of steps."""

    def tensors(self) -> dict[str, Tensor]:
        """Everything that it has learnt, live: writing into these restores it."""

    def advance(self, step: int, rate: float) -> float:
        """Do step number `step` at `rate` times the highest learning rate; return the loss."""

    def evaluate(self) -> dict[str, float]:
        """Figures on held-out data."""


def learning_rate(step: int, steps: int, warmup: int, decay: float) -> float:
    """Linear warm-up, constant, then linear decay to zero over the last `decay` of all steps."""
    return min(1.0, (step + 1) / max(1, warmup), (steps - step) / max(1.0, decay * steps))


def _resume(job: Job, file: Path, rates: list[float] | None) -> tuple[list[float], float]:
    """Restore `job`; the rates of the steps already done, which must be those planned if any are, and the seconds already spent."""
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
    if rates is not None and rates[: len(done)] != done:
        raise PairmiError(
            f"train: {file} has done {len(done)} steps of another learning-rate schedule; keep --steps, or choose another --run"
        )
    for name, tensor in live.items():
        tensor.copy_(saved[name])
    return done, about["seconds"]


def _keep_log(file: Path, steps: int) -> None:
    """Drop what was logged after the last checkpoint, so that no step stands twice."""
    if file.is_file():
        lines = [line for line in file.read_text().splitlines() if line.endswith("}") and json.loads(line)["step"] <= steps]
        write_whole(file, "".join(f"{line}\n" for line in lines).encode())


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """The folder of a run for this process alone, until it leaves or dies; a second trainer is refused."""
    run.mkdir(parents=True, exist_ok=True)
    with open(run / ".lock", "a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise PairmiError(
                f"train: {run} is being trained in by process {lock.read().strip() or '?'}; wait for it, or choose another --run"
            ) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def _refuse_nonfinite(step: int, loss: float, tensors: Mapping[str, Tensor]) -> None:
    """Nothing can be learnt after a number that is not finite, and it must not replace what was learnt before."""
    bad = [name for name, tensor in tensors.items() if not bool(torch.isfinite(tensor).all())]
    if bad or not math.isfinite(loss):
        raise PairmiError(
            f"train: step {step} gave a loss of {loss:g} and numbers that are not finite in {', '.join(bad[:3]) or 'no weights yet'}; "
            "the last checkpoint stays as it was: lower the learning rate, or look at the data"
        )


def fit(
    job: Job,
    run: Path,
    *,
    steps: int,
    warmup: int,
    decay: float,
    save_every: int,
    evaluate_every: int,
    seconds: float | None = None,
    quiet: bool = False,
    leads: bool = True,
) -> Path:
    """Train to the end, or go on from the last checkpoint in `run`; returns the final checkpoint.

    `run` gets `checkpoint.safetensors` (atomic), `log.jsonl` (one line per evaluation) and `stable.safetensors`, the last
    checkpoint before the learning rate falls: from there a longer schedule can go on. Of several processes that train together
    one leads: it alone writes and measures; the number of processes may change between two starts. With `seconds` the schedule goes by
    steps or by time, whichever is further, and ends in time: then the result depends on the machine.
    """
    if min(steps, save_every, evaluate_every) < 1:
        raise PairmiError(f"train: expected steps, save_every and evaluate_every >= 1, got {steps}, {save_every} and {evaluate_every}")
    rates = [learning_rate(step, steps, warmup, decay) for step in range(steps)]
    file, log = run / "checkpoint.safetensors", run / "log.jsonl"
    with locked(run) if leads else nullcontext():
        before, spent = _resume(job, file, rates if seconds is None else None) if file.is_file() else ([], 0.0)
        start = len(before)
        rates[:start] = before
        if leads:
            _keep_log(log, start)
        began, recent = time.monotonic() - spent, 0.0
        bar = tqdm(range(start, steps), initial=start, total=steps, desc="train", unit="step", file=sys.stderr, disable=quiet or not leads)
        for step in bar:
            at = step if seconds is None else max(step, min(steps - 1, int(steps * (time.monotonic() - began) / seconds)))
            rates[step], last = learning_rate(at, steps, warmup, decay), at == steps - 1
            loss, done = job.advance(step, rates[step]), step + 1
            saves = leads and (done % save_every == 0 or last)
            _refuse_nonfinite(step, loss, job.tensors() if saves else {})
            recent = loss if step == start else 0.98 * recent + 0.02 * loss
            bar.set_postfix(loss=f"{recent:.4f}", refresh=False)
            if leads and (done % evaluate_every == 0 or last):
                record = {"step": done, "seconds": round(time.monotonic() - began, 1), "rate": rates[step], "loss": loss} | job.evaluate()
                with log.open("a") as out:
                    out.write(json.dumps(record) + "\n")
            if saves:
                about = {"job": job.about(), "rates": rates[:done], "seconds": time.monotonic() - began}
                if not last and rates[done] == 1.0:
                    save_tensors(run / "stable.safetensors", job.tensors(), about)
                save_tensors(file, job.tensors(), about)
            if last:
                break
    return file


def read_log(file: Path) -> list[dict[str, int | float]]:
    """The records of a run, in order."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def export(checkpoint: Path, out: Path, kind: str, dtype: torch.dtype = torch.float32) -> None:
    """The weights of a checkpoint alone, with what they are, what they come from and how long it took."""
    tensors, about = load_tensors(checkpoint)
    weights = {name: tensor.to(dtype) for name, tensor in learnt(tensors).items()}
    described = {"kind": kind, "steps": len(about["rates"]), "seconds": about["seconds"], "provenance": provenance()}
    save_tensors(out, weights, {**about["job"], **described})
