"""`pairmi labels`: states with their probed mutual information, shard by shard; what is finished is never done again."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from pairmi.counting import Counting
from pairmi.mi.probe import Probe
from pairmi.provenance import provenance
from pairmi.spec import Model, identify
from pairmi.spread.local import Local
from pairmi.spread.placed import placed
from pairmi.spread.units import Engine, Failure, Outcome, Unit, by_halves, settled, task_name
from pairmi.store import Labels, check, shard_file, triangle, write_shard
from pairmi.training.states import State, States
from pairmi.types import PairmiError


def describe(model: Model, states: States, probe: Probe, seed: int, shard: int) -> dict[str, Any]:
    """Everything that labels depend on."""
    about = {"format": 1, "backbone": identify(model), "form": probe.form, "floor": probe.floor, "seed": seed, "shard": shard}
    return about | {"length": model.length, "symbols": "".join(model.vocab.symbols), "states": _plain(states.about())}


def _plain(about: dict[str, Any]) -> dict[str, Any]:
    """With lists for tuples, as JSON gives it back."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in about.items()}


def label(model: Model, states: Sequence[State], probe: Probe, together: int = 64) -> Labels:
    """Probe states of one length, many canvases in one batch of rows, so that every call of the backbone is full."""
    parts: dict[str, list[torch.Tensor]] = {}
    for some in torch.stack([state.tokens for state in states]).split(together):
        backbone = Counting(model, probe.batch_rows)
        with torch.inference_mode():
            prediction = backbone(some)
            found = probe.measure(prediction, backbone)
        masked = prediction.masked.sum(1)
        pairs = (masked * (masked - 1)).clamp_min(1)
        values = {
            "mi": triangle(found.matrix.clamp_min(0)).float(),
            "entropies": found.entropies.float(),
            "bound": found.bound.amax((1, 2)).float(),
            "asymmetry": ((found.directed - found.directed.transpose(1, 2)).abs().sum((1, 2)) / pairs).float(),
            "inconsistency": (found.inconsistency.sum((1, 2)) / pairs).float(),
            "rows": found.rows + 1,
            "masked": masked,
            "tokens": some,
        }
        for name, value in values.items():
            parts.setdefault(name, []).append(value)
    tensors = {name: torch.cat(values) for name, values in parts.items()}
    source, rules, grids = zip(*((state.source, state.rule, state.grid) for state in states), strict=True)
    return Labels(**tensors, source=source, rule=rules, grid=grids)


@dataclass(frozen=True)
class Labelling:
    """The job of a shard: draw its states, probe them."""

    model: Model
    states: States
    probe: Probe

    def on(self, device: str) -> "Labelling":
        """The same with its network on another device."""
        return replace(self, model=replace(self.model, backbone=placed(self.model.backbone, device)))

    def __call__(self, unit: Unit) -> Outcome:
        """The labels of all states of the shard; absent if one of them cannot be labelled."""
        number = unit.start // len(unit)
        drawn, failures = by_halves(lambda _: self.states.draw(self.model, unit.seed, number, len(unit)), [unit], lambda one: one.name)
        if failures:
            return Outcome(unit, None, tuple(failures))
        made, failures = by_halves(lambda some: label(self.model, some, self.probe), drawn[0], lambda state: self._canvas(unit, state))
        return Outcome(unit, None if failures else made[0], tuple(failures))

    def _canvas(self, unit: Unit, state: State) -> str:
        return f"{unit.name}: {state.source} canvas {self.model.vocab.decode(state.tokens)}"


def make_labels(
    model: Model,
    states: States,
    folder: Path,
    count: int,
    *,
    seed: int = 0,
    probe: Probe | None = None,
    shard: int = 256,
    part: tuple[int, int] = (0, 1),
    engine: Engine | None = None,
    quiet: bool = False,
) -> None:
    """At least `count` labelled states in `folder`, in whole shards of `shard` states; only the missing shards are made.

    A shard is a function of (seed, its number, the backbone), whatever the engine. `part` = (k, n) makes every n-th shard, from the
    k-th: n processes with different k share the work. A shard with a state that cannot be labelled stays absent; the state is named on
    standard error, the other shards are made, and then `Incomplete` is raised.
    """
    if count < 1 or shard < 1:
        raise PairmiError(f"labels: expected at least one state and one in a shard, got {count} and {shard}")
    if not 0 <= part[0] < part[1]:
        raise PairmiError(f"labels: part {part[0]}/{part[1]} does not exist; expected 0/N to N-1/N")
    probe = probe or Probe()
    settings = describe(model, states, probe, seed, shard)
    done = check(folder, settings)
    mine = [number for number in range(-(-count // shard)) if number % part[1] == part[0]]
    todo = [number for number in mine if number not in done]
    task, about = task_name("labels", settings), {"settings": settings, "provenance": provenance()}
    units = (Unit(task, seed, number * shard, (number + 1) * shard, settings["backbone"]) for number in todo)
    bar = tqdm(
        total=shard * len(mine), initial=shard * (len(mine) - len(todo)), desc="labels", unit="state", file=sys.stderr, disable=quiet
    )

    def report(failure: Failure) -> None:
        tqdm.write(f"labels: {failure}", file=sys.stderr)

    with bar:
        for outcome in settled((engine or Local()).run(Labelling(model, states, probe), units), report):
            if outcome.value is not None:
                number = outcome.unit.start // shard
                write_shard(shard_file(folder, number), outcome.value, about | {"number": number, "unit": outcome.unit.name})
                bar.update(shard)
