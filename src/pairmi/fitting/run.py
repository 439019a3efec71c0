"""One call for one's own model: labels, a head, its calibration, a tuned rule and a report, in the time that there is."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from pairmi.api import as_model
from pairmi.backbones.checkpoint import ensure_writable, write_whole
from pairmi.backbones.identity import identify
from pairmi.fitting import learning, stages
from pairmi.fitting.clock import Clock
from pairmi.fitting.data import read_data
from pairmi.fitting.job import Fit
from pairmi.fitting.report import write_report
from pairmi.loading import HEAD_FILE, equip, with_head
from pairmi.model import Model
from pairmi.spread.units import Engine
from pairmi.training.loop import locked
from pairmi.tuning import Per
from pairmi.types import Backbone, PairmiError


def fit(
    model: Backbone,
    data: str | Path | Sequence[Any] | None,
    out: str | Path,
    *,
    minutes: float = 60.0,
    max_loss: float = 0.01,
    per: Per = "position",
    seed: int = 0,
    engine: Engine | None = None,
    quiet: bool = False,
) -> Model:
    """The model with a head, a calibration and a tuned rule, all in the folder `out`, which `load(..., head=out)` reads.

    `data` is a file (one sequence a line, or FASTA) or a list of texts or token ids: complete sequences, and canvases if some positions
    are marked as unknown. The rule is the fastest that loses at most `max_loss` nats a position (or a sequence). A killed call goes on
    when it is repeated. A model without hidden states gets no head: its rule probes. `out` also gets `report.html` and a model card.
    """
    began = monotonic()
    if not minutes > 0:
        raise PairmiError(f"fit: minutes={minutes}: must be above 0")
    whole, folder = as_model(model), Path(out)
    whole = replace(whole, head=None, calibration=None, rule=None)
    found, work = read_data(whole, data), folder / "work"
    ensure_writable(folder, "fit: --out")
    with locked(work):
        about = {"backbone": identify(whole), "states": found.states.about(), "minutes": minutes, "seed": seed, "limit": [max_loss, per]}
        _keep_settings(work / "settings.json", about)
        clock = Clock(work / "clock.json", minutes)
        clock.add("start", monotonic() - began)

        def say(text: str) -> None:
            if not quiet:
                print(f"pairmi fit: {text} ({clock.words()})", file=sys.stderr, flush=True)

        _run(Fit(whole, found, work, clock, seed, say, engine), folder, max_loss, per)
    return with_head(whole, str(folder))


def _run(job: Fit, folder: Path, max_loss: float, per: Per) -> None:
    """All stages; what a former start has finished is not done again."""
    hidden = learning.reports_hidden(job)
    if not hidden:
        job.say("this model reports no hidden states: no head is trained, rules probe")
    count = learning.label(job) if hidden else 0
    learning.train(job, count)
    job = stages.calibrated(learning.guided(job))
    rule = stages.tuned(job, max_loss, per)
    equip(job.work / HEAD_FILE, folder / HEAD_FILE, job.model.calibration, rule)
    checks = stages.checked(job)
    stages.priced(job, rule["rule"])
    with job.clock.stage("report"):
        write_report(job, folder, count, rule, checks)
    job.say(f"done: {folder}")


def _keep_settings(file: Path, about: dict[str, Any]) -> None:
    """Refuse a folder in which something else was begun."""
    told = json.loads(json.dumps(about))
    if file.is_file() and (before := json.loads(file.read_text())) != told:
        names = ", ".join(name for name in told if told[name] != before.get(name))
        raise PairmiError(f"fit: {file.parent.parent} holds another fit (different: {names}); choose another --out, or remove it")
    write_whole(file, json.dumps(told).encode())
