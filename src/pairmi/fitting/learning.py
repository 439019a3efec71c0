"""The stages of a fit that make a head: label, train."""

from copy import deepcopy
from dataclasses import replace
from time import monotonic
from typing import Any

import torch

from pairmi.backbones.checkpoint import save_tensors
from pairmi.backbones.identity import identify
from pairmi.backbones.masked_lm import MaskedLM
from pairmi.fitting.job import ENDS, Fit
from pairmi.loading import HEAD_FILE, with_head
from pairmi.mi.head import LowRankHead
from pairmi.mi.heads import UNTRAINED, Layered
from pairmi.model import device_of
from pairmi.store import Labels, read_store, shards
from pairmi.training.distill import Distill, DistillConfig, export_head, make_head
from pairmi.training.labels import Effort, make_labels
from pairmi.training.length_buckets import typical_share
from pairmi.training.loop import fit as train_job
from pairmi.training.optimizer import Rates

SHARD, LEAST = 16, 8  # states in a shard, at most, and shards that a head needs
FEW = 2  # states in a shard, where each takes long
ENOUGH = 64  # shards, after which more would not help where no two states have a measured pair
POSITIONS = 4  # probed of each state
SIZES = {
    "inner": 48,
    "forms": 8,
    "rank": 16,
    "mixer": 16,
    "hops": 0,
    "edges": 4,
    "reach": 0,
    "last_reach": 0,
}  # of a head for some thousand states


def reports_hidden(fit: Fit) -> bool:
    """Whether there is anything that a head could read."""
    model = deepcopy(fit.model) if fit.spread else fit.model  # one of transformers that was called cannot travel to workers
    return bool(model(fit.data.canvases[0][None].to(device_of(model))).hidden.shape[2])


def shard_of(fit: Fit) -> int:
    """States in a shard, by what one takes: the second, for with the first comes what is done once."""
    if fit.spread:
        return SHARD
    share, how = ENDS["labels"] * fit.clock.total, dict[str, Any](effort=Effort(POSITIONS), shard=1, quiet=True)
    with fit.clock.stage("start"):
        for number in (1, 2):
            began = monotonic()
            make_labels(fit.model, fit.data.states, fit.work / "tried", number, seed=fit.seed, **how)
    return int(min(max(0.8 * share / LEAST / (monotonic() - began), FEW), SHARD))


def label(fit: Fit) -> int:
    """Label states until the stage's time is over; how many there are."""
    folder, size = fit.work / "labels", int(fit.decided("shard", lambda: shard_of(fit)))
    share = 0.8 if fit.spread else 0.5  # of the time left at a go: the machine may get slower meanwhile

    def finished() -> int:
        while True:
            done, spent, left = len(shards(folder)), fit.clock.seconds.get("labels", 0.0), fit.until("labels")
            fits = int(share * left * done / max(spent, 1e-3)) if left > 0.1 * ENDS["labels"] * fit.clock.total else 0
            more = (fits or min(LEAST - done, LEAST if fit.spread else 1)) if done else LEAST if fit.spread else 1
            late = left < -0.2 * ENDS["labels"] * fit.clock.total  # then fewer must do
            if (more < 1 or late) and (done >= ENOUGH or (done and parted(read_store(folder)[0], fit.model.vocab.size) is not None)):
                return size * done
            more = LEAST if more < 1 else 1 if late else more
            fit.say(f"labels: {size * more} more states of {size * done}")
            with fit.clock.stage("labels"):
                wanted, how = size * (done + more), dict[str, Any](effort=Effort(POSITIONS), shard=size, engine=fit.engine)
                make_labels(fit.model, fit.data.states, folder, wanted, seed=fit.seed, **how)

    return int(fit.decided("states", finished))


def parted(labels: Labels, mask: int) -> tuple[Labels, Labels] | None:
    """Labels to train on and to validate on: of other sequences, or else of the last states; None where there is nothing measured."""
    cut = len(labels) - max(1, len(labels) // 4)
    apart = (labels.split("train"), labels.split("validation"))
    for some in (apart, (labels.pick(torch.arange(cut)), labels.pick(torch.arange(cut, len(labels))))):
        if all(len(part) > 0 and part.has_pair(mask) for part in some):
            return some
    return None


def train(fit: Fit, count: int) -> None:
    """A head of so many labelled states, in `work`; or a file that says that the backbone has no hidden states to read."""
    out = fit.work / HEAD_FILE
    if out.is_file():
        return
    if not count:
        save_tensors(out, {}, {"kind": "head", "head": UNTRAINED, "backbone": identify(fit.model)})
        return
    with fit.clock.stage("head"):
        labels, settings = read_store(fit.work / "labels", count)
        known, unseen = parted(labels, fit.model.vocab.size) or (labels, labels)
        model, depth = fit.model, fit.model.backbone.depth if isinstance(fit.model.backbone, Layered) else 0
        layers = sorted({max(1, round(2 * depth / 3)), depth}) if depth else []
        head = make_head(LowRankHead.kind, model, layers, SIZES, fit.seed)
        if isinstance(head, LowRankHead) and model.length is None:
            head.begin_at(typical_share(known))
        precision = str(model.backbone.dtype).removeprefix("torch.") if isinstance(model.backbone, MaskedLM) else "float32"
        config = DistillConfig(fit.seed, loss="root", rates=Rates(muon=0.015, adam=3e-3), precision=precision)
        job = Distill(model, head, layers, known, settings, config, held_out=unseen)
        seconds = fit.decided("head", lambda: max(fit.until("head"), 0.3 * ENDS["head"] * fit.clock.total))
        steps = fit.decided("steps", lambda: steps_for(job, seconds))
        fit.say(f"head: {steps} steps on {len(labels)} states")
        schedule = {"steps": steps, "warmup": min(50, steps // 4), "decay": 0.7, "save_every": 25, "evaluate_every": max(1, steps // 10)}
        export_head(train_job(job, fit.work / "head", **schedule, seconds=seconds), out)


def steps_for(job: Distill, seconds: float, tried: int = 4) -> int:
    """How many steps take so long; the job is afterwards as it was before."""
    kept = {name: tensor.clone() for name, tensor in job.tensors().items()}
    job.advance(0, 0.0)  # warm
    began = monotonic()
    for step in range(tried):
        job.advance(step, 0.0)
    each = (monotonic() - began) / tried
    for name, tensor in job.tensors().items():
        tensor.copy_(kept[name])
    return int(min(max(seconds / each, 60), 8000))


def guided(fit: Fit) -> Fit:
    """With the head that was trained."""
    return replace(fit, model=with_head(fit.model, str(fit.work / HEAD_FILE)))
