"""The stages of a fit, each cut to the time that it has: label, train, calibrate, tune, price."""

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from jaxtyping import Int
from torch import Tensor

from pairmi import tuning
from pairmi.backbones.checkpoint import save_tensors, write_whole
from pairmi.backbones.identity import identify
from pairmi.backbones.masked_lm import MaskedLM
from pairmi.bench.ledger import Ledger
from pairmi.fitting.clock import Clock
from pairmi.fitting.data import Data
from pairmi.loading import HEAD_FILE, with_head
from pairmi.mi.head import LowRankHead
from pairmi.mi.heads import UNTRAINED, Layered
from pairmi.model import Model, device_of
from pairmi.pricing.calibrate import NothingLost, calibrate, reliability
from pairmi.selectors.charge import Calibration
from pairmi.spec import estimate
from pairmi.spread.local import Local
from pairmi.spread.units import Engine
from pairmi.store import read_store, shards
from pairmi.training.distill import Distill, DistillConfig, export_head, make_head
from pairmi.training.labels import Effort, make_labels
from pairmi.training.length_buckets import typical_share
from pairmi.training.loop import fit as train_job
from pairmi.training.optimizer import Rates

SHARES = {"labels": 0.38, "head": 0.17, "calibrate": 0.15, "tune": 0.12}  # of the time; the rest prices rules and writes the report
SHARD, LEAST = 16, 8  # states in a shard, and shards that a head needs
ENOUGH = 64  # shards, after which more would not help where there is nothing to validate on
POSITIONS = 4  # probed of each state
SIZES = {"inner": 48, "forms": 8, "rank": 16, "mixer": 16, "hops": 0, "edges": 4, "reach": 0}  # of a head for some thousand states
BUDGETS = (0.01, 0.03, 0.1, 0.3)  # nats a pass, that a calibration is fitted at
CHECKED = (0.02, 0.06, 0.2)  # and checked at, on other draws
ROUNDS = 4
FAMILY = "mi-bound:charge=calibrated,budget=0.005|0.01|0.02|0.04|0.07|0.12|0.2|0.35|0.6"
UNCALIBRATED = "mi-bound:budget=0.005|0.01|0.02|0.04|0.07|0.12|0.2|0.35|0.6"
RULES = (
    "top-k:k=2",
    "top-k:k=4",
    "top-k:k=8",
    "eb:budget=0.1",
    "eb:budget=1",
    "eb:budget=4",
    "threshold:threshold=0.9",
    "mi-guided:budget=1",
)
TESTED = 5  # settings that tuning tries before one fails, as a guess
FEWEST, MOST = 8, 512  # sequences of a measurement
TRIED = 4  # sequences that the first guess of a cost is measured on
SEEDS = {"calibrate": 1_000_003, "check": 2_000_003}  # other draws than those that tune and price


@dataclass(frozen=True)
class Fit:
    """What the stages share."""

    model: Model
    data: Data
    work: Path
    clock: Clock
    seed: int
    say: Callable[[str], None]
    engine: Engine | None = None

    @property
    def spread(self) -> bool:
        """Whether other processes label, which take a while to start."""
        return not isinstance(self.engine, Local | None)

    @property
    def ledger(self) -> Ledger:
        """What has been measured."""
        return Ledger(self.work / "records.jsonl")

    def decided(self, name: str, decide: Callable[[], Any]) -> Any:
        """A number that was chosen once, whatever the time is after a kill."""
        file = self.work / "plan.json"
        plan = json.loads(file.read_text()) if file.is_file() else {}
        if name not in plan:
            plan[name] = decide()
            write_whole(file, json.dumps(plan).encode())
        return plan[name]

    def given(self, count: int) -> list[Int[Tensor, " _"]]:
        """So many sequences to fill, the canvases in turn."""
        return tuning.sequences_of(self.model, self.data.canvases, count)

    def price(self, rule: str, count: int) -> dict[str, Any]:
        """What a rule loses on so many sequences."""
        return tuning.price(self.model, self.data.canvases, rule, seed=self.seed, sequences=count).about()


def label(fit: Fit) -> int:
    """Label shards of states until the stage's time is over; how many there are."""
    folder, share = fit.work / "labels", SHARES["labels"] * fit.clock.total

    def finished() -> int:
        while True:
            done, spent = len(shards(folder)), fit.clock.seconds.get("labels", 0.0)
            fits = int(0.8 * (share - spent) * done / max(spent, 1e-3)) if share - spent > 0.1 * share else 0
            more = (fits or LEAST - done) if done else LEAST if fit.spread else 1
            if more < 1 and (done >= ENOUGH or _teach(folder, fit.model.vocab.size)):
                return done
            more = LEAST if more < 1 else more
            fit.say(f"labels: {SHARD * more} more states of {SHARD * done}")
            with fit.clock.stage("labels"):
                wanted, effort = SHARD * (done + more), Effort(POSITIONS)
                make_labels(fit.model, fit.data.states, folder, wanted, seed=fit.seed, effort=effort, shard=SHARD, engine=fit.engine)

    return int(fit.decided("shards", finished))


def _teach(folder: Path, mask: int) -> bool:
    """Whether there is a measured pair to train on, and one to validate on."""
    labels, _ = read_store(folder)
    return all(len(some) > 0 and some.has_pair(mask) for some in (labels.split("train"), labels.split("validation")))


def train(fit: Fit, count: int) -> None:
    """A head of so many shards of labels, in `work`; or a file that says that the backbone has no hidden states to read."""
    out = fit.work / HEAD_FILE
    if out.is_file():
        return
    if not count:
        save_tensors(out, {}, {"kind": "head", "head": UNTRAINED, "backbone": identify(fit.model)})
        return
    with fit.clock.stage("head"):
        labels, settings = read_store(fit.work / "labels", SHARD * count)
        model, depth = fit.model, fit.model.backbone.depth if isinstance(fit.model.backbone, Layered) else 0
        layers = sorted({max(1, round(2 * depth / 3)), depth}) if depth else []
        head = make_head(LowRankHead.kind, model, layers, SIZES, fit.seed)
        if isinstance(head, LowRankHead) and model.length is None:
            head.begin_at(typical_share(labels.split("train")))
        precision = str(model.backbone.dtype).removeprefix("torch.") if isinstance(model.backbone, MaskedLM) else "float32"
        config = DistillConfig(fit.seed, loss="root", rates=Rates(muon=0.015, adam=3e-3), precision=precision)
        job = Distill(model, head, layers, labels, settings, config)
        steps = fit.decided("steps", lambda: steps_for(job, min(SHARES["head"] * fit.clock.total, 0.3 * fit.clock.left)))
        fit.say(f"head: {steps} steps on {len(labels)} states")
        schedule = {"steps": steps, "warmup": min(50, steps // 4), "decay": 0.7, "save_every": 25, "evaluate_every": max(1, steps // 10)}
        export_head(train_job(job, fit.work / "head", **schedule), out)


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
    return int(min(max(0.9 * seconds / each, 60), 8000))


def sequences_for(fit: Fit, seconds: float, settings: int) -> int:
    """How many sequences of each of some settings can be priced in this time, by what pricing has taken so far."""
    records = [record for record in fit.ledger.found.values() if "walks" in record]
    each = sum(record["seconds"] for record in records) / max(1, sum(record["walks"] for record in records))
    return int(min(max(seconds / max(each, 1e-6) / settings, FEWEST), MOST))


def timed(fit: Fit, settings: Mapping[str, Any], walks: int, measure: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """A measurement with how long it took, kept."""

    def measured() -> Mapping[str, Any]:
        began = monotonic()
        return {"walks": walks, **measure(), "seconds": monotonic() - began}

    return fit.ledger.measured(settings, measured)


def calibrated(fit: Fit) -> Fit:
    """With a calibration, unless nothing is lost that one could learn from."""
    model = fit.model
    with fit.clock.stage("calibrate"):
        timed(fit, {"what": "trial"}, TRIED, lambda: fit.price("mi-bound:budget=0.1", TRIED))
        count = fit.decided(
            "calibrate", lambda: sequences_for(fit, min(SHARES["calibrate"] * fit.clock.total, 0.4 * fit.clock.left), ROUNDS * len(BUDGETS))
        )
        mi, given, walks = estimate("head" if model.head is not None else "probe", model), fit.given(count), ROUNDS * len(BUDGETS) * count
        fit.say(f"calibrate: {len(BUDGETS)} budgets, {ROUNDS} times {count} sequences")

        def fitted() -> Mapping[str, Any]:
            seed = fit.seed + SEEDS["calibrate"]
            try:
                return {"calibration": calibrate(model, given, mi, tuning.calibrated_rule, BUDGETS, rounds=ROUNDS, seed=seed).about()}
            except NothingLost as error:
                return {"calibration": None, "why": str(error)}

        found = timed(fit, {"what": "calibration", "sequences": count}, walks, fitted)
    if found["calibration"] is None:
        fit.say(f"not calibrated: {found['why']}")
        return fit
    return replace(fit, model=replace(model, calibration=Calibration.from_about(found["calibration"])))


def tuned(fit: Fit, max_loss: float, per: tuning.Per) -> dict[str, Any]:
    """The fastest setting that keeps the limit, with its evidence."""
    family = tuning.family_of(UNCALIBRATED if fit.model.calibration is None else FAMILY)
    with fit.clock.stage("tune"):
        seconds = min(SHARES["tune"] * fit.clock.total, 0.5 * fit.clock.left)
        count = fit.decided("tune", lambda: sequences_for(fit, seconds, TESTED))
        fit.say(f"tune: up to {len(family)} settings on {count} sequences, at most {max_loss:g} nats a {per}")
        limit: dict[str, Any] = {"max_loss": max_loss, "per": per}

        def found() -> Mapping[str, Any]:
            result = tuning.tune(fit.model, fit.data.canvases, family, **limit, seed=fit.seed, sequences=count)
            return result.about() | {"walks": count * len(result.tested)}

        record = timed(fit, {"what": "tuned", "sequences": count} | limit, 0, found)
    fit.say(record["words"])
    return {name: value for name, value in record.items() if name not in ("settings", "provenance", "walks", "seconds")}


def checked(fit: Fit) -> list[dict[str, Any]]:
    """What passes lose where the calibrated rule is asked for some budgets, on other draws."""
    charge, model, records = fit.model.calibration, fit.model, list[dict[str, Any]]()
    if not isinstance(charge, Calibration):
        return records
    with fit.clock.stage("price"):
        count = fit.decided("check", lambda: sequences_for(fit, 0.3 * fit.clock.left, len(CHECKED)))
        fit.say(f"check: {len(CHECKED)} budgets on {count} other sequences")
        mi, given = estimate("head" if model.head is not None else "probe", model), fit.given(count)
        for budget in CHECKED:

            def measured(budget: float = budget) -> Mapping[str, Any]:
                (one,) = reliability(model, given, mi, tuning.calibrated_rule, charge, (budget,), seed=fit.seed + SEEDS["check"])
                return {"budget": budget, "predicted": one.predicted, "measured": one.measured, "error": one.error}

            records.append(timed(fit, {"what": "reliability", "budget": budget, "sequences": count}, count, measured))
    return records


def priced(fit: Fit, rule: str) -> list[dict[str, Any]]:
    """The tuned rule, its neighbours in the family, and rules without MI, all on the same sequences: as many as time allows."""
    own = tuning.family_of(UNCALIBRATED if fit.model.calibration is None else FAMILY)[1::2]
    rules = dict.fromkeys((rule, *own, *RULES))
    with fit.clock.stage("price"):
        count = fit.decided("price", lambda: sequences_for(fit, 0.9 * fit.clock.left, len(rules)))
        fit.say(f"price: {len(rules)} rules on {count} sequences")
        found = []
        for spec in rules:
            settings = {"what": "price", "rule": spec, "sequences": count}
            found.append(timed(fit, settings, count, partial(fit.price, spec, count)))
            fit.say(f"  {spec}: {found[-1]['nats']:.3g} nats in {found[-1]['passes']:.1f} passes")
    return found


def reports_hidden(fit: Fit) -> bool:
    """Whether there is anything that a head could read."""
    model = deepcopy(fit.model) if fit.spread else fit.model  # one of transformers that was called cannot travel to workers
    return bool(model(fit.data.canvases[0][None].to(device_of(model))).hidden.shape[2])


def guided(fit: Fit) -> Fit:
    """With the head that was trained."""
    return replace(fit, model=with_head(fit.model, str(fit.work / HEAD_FILE)))
