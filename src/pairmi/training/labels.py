"""`pairmi labels`: states with their probed mutual information, shard by shard; what is finished is never done again."""

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from tqdm import tqdm

from pairmi.backbones.checkpoint import ensure_writable
from pairmi.backbones.identity import identify
from pairmi.backbones.masked_lm import MaskedLM
from pairmi.backbones.transformer import Transformer
from pairmi.counting import Counting
from pairmi.draw import Streams
from pairmi.info import entropy_of, pairs
from pairmi.mi.probe import Probe
from pairmi.mi.sampled import SampledProbe
from pairmi.model import Model, device_of
from pairmi.provenance import provenance
from pairmi.spread.local import Local
from pairmi.spread.placed import placed
from pairmi.spread.units import Engine, Failure, Outcome, Unit, bisect_failures, settled, task_name
from pairmi.store import Labels, Split, check, joined_labels, part_of, shard_file, triangle, write_index, write_shard
from pairmi.training.states import State, States, grid_name
from pairmi.training.structures import StructureStates
from pairmi.types import Meter, PairMatrix, PairmiError, Prediction

Probing = Probe | SampledProbe
SURE = 0.01  # nats: of a position of less entropy nothing is drawn and no pair is labelled; a head cannot say more of these than that


@dataclass(frozen=True)
class Effort:
    """What is labelled, and how much of it.

    A few probed positions tell all pairs that they are part of, from one side: so many more states come for the same rows. What is
    tested on is probed whole.
    """

    positions: int = 0  # probed of each state, drawn at random from those that pruning would probe; 0 = all of these
    part: Split | None = None  # only the states of these grids; None = all

    def __post_init__(self) -> None:
        if self.positions < 0:
            raise PairmiError(f"labels: expected positions >= 0 (0 = all), got {self.positions}")

    def wanted(self, states: Sequence[State]) -> list[State]:
        """Those of the wanted grids."""
        found = [state for state in states if self.part in (None, part_of(state.grid))]
        if not found:
            raise PairmiError(f"labels: none of {len(states)} states is of a {self.part} grid; put more into a shard")
        return found

    def sources(self, prediction: Prediction, settled: Bool[Tensor, "B L"]) -> Bool[Tensor, "B L"] | None:
        """Where to probe; of each canvas a function of its tokens alone."""
        if not self.positions:
            return None
        chosen, possible = torch.zeros_like(settled, device="cpu"), (prediction.masked & ~settled).cpu()
        for row, tokens in enumerate(prediction.tokens.cpu()):
            where = torch.nonzero(possible[row])[:, 0]
            order = np.random.default_rng(int(grid_name(tokens), 16)).permutation(len(where))
            chosen[row, where[order[: self.positions]]] = True
        return chosen.to(settled.device)


def describe(model: Model, states: States, probe: Probing, seed: int, shard: int, effort: Effort) -> dict[str, Any]:
    """Everything that labels depend on."""
    about = {"format": 2, "backbone": identify(model), "form": probe.form, "seed": seed, "shard": shard}
    about |= {"draws": probe.draws} if isinstance(probe, SampledProbe) else {"floor": probe.floor}
    about |= {"length": None if isinstance(states, StructureStates) else model.length}
    about |= {"symbols": "".join(model.vocab.symbols), "states": states.about()}
    dtype = model.backbone.dtype if isinstance(model.backbone, Transformer | MaskedLM) else torch.float32
    return about | asdict(effort) | ({} if dtype == torch.float32 else {"precision": str(dtype).removeprefix("torch.")})


def label(model: Model, states: Sequence[State], probe: Probing, effort: Effort | None = None, together: int = 64) -> Labels:
    """Probe states of one length, many canvases in one batch of rows, so that every call of the backbone is full."""
    parts: list[dict[str, Tensor]] = []
    for some in torch.stack([state.tokens for state in states]).split(together):
        backbone = Counting(model, probe.batch_rows)
        with torch.inference_mode():
            prediction = backbone(some.to(device_of(model)))
            values = measured(prediction, backbone, probe, effort or Effort())
        backbone.complain()
        parts.append({name: value.cpu() for name, value in {**values, "masked": prediction.masked.sum(1), "tokens": some}.items()})
    tensors = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    source, rules, grids = zip(*((state.source, state.rule, state.grid) for state in states), strict=True)
    return Labels(**tensors, source=source, rule=rules, grid=grids)


def measured(prediction: Prediction, backbone: Meter, probe: Probing, effort: Effort) -> dict[str, Tensor]:
    """The columns of labels that probing fills."""
    if isinstance(probe, SampledProbe):
        return drawn(prediction, backbone, probe, effort)
    return probed(prediction, backbone, probe, effort)


def probed(prediction: Prediction, backbone: Meter, probe: Probe, effort: Effort) -> dict[str, Tensor]:
    """The columns of exact labels."""
    settled = probe.settled(prediction)
    sources = effort.sources(prediction, settled)
    found = probe.measure(prediction, backbone, sources)
    seen = prediction.masked if sources is None else sources | settled
    within, mine, theirs = pairs(prediction.masked), seen[:, :, None], seen[:, None, :]
    return {
        "mi": triangle(torch.where(mine | theirs | ~within, found.matrix.clamp_min(0), torch.nan)).float(),
        "entropies": found.entropies.float(),
        "draws": torch.zeros_like(found.rows),
        "bound": torch.where(mine | theirs, found.bound, 0).amax((1, 2)).float(),
        "asymmetry": _mean((found.directed - found.directed.transpose(1, 2)).abs(), within & mine & theirs),
        "inconsistency": _mean(found.inconsistency, within & mine),
        "rows": found.rows + 1,
    }


def drawn(prediction: Prediction, backbone: Meter, probe: SampledProbe, effort: Effort) -> dict[str, Tensor]:
    """The columns of unbiased labels, with random numbers that depend on the tokens of a state alone.

    The label of a pair of which one side was drawn is that side's: as positions are chosen at random, unbiased for the mean of both.
    """
    unsure = prediction.masked & (entropy_of(prediction) > SURE)
    sources = effort.sources(prediction, ~unsure)
    sources = unsure if sources is None else sources
    names = torch.tensor([int(grid_name(tokens), 16) >> 1 for tokens in prediction.tokens.cpu()], device=sources.device)
    found = probe.measure(prediction, backbone, Streams(0, names), sources, each=1)
    known = pairs(unsure) & (sources[:, :, None] | sources[:, None]) | ~pairs(prediction.masked)
    nothing = torch.full_like(found.rows, torch.nan, dtype=torch.float32)
    return {
        "mi": triangle(torch.where(known, found.matrix, torch.nan)).float(),
        "entropies": found.entropies.float(),
        "draws": torch.full_like(found.rows, probe.draws),
        "bound": torch.full_like(nothing, torch.inf),
        "asymmetry": nothing,
        "inconsistency": nothing,
        "rows": found.rows + 1,
    }


def _mean(values: PairMatrix, within: Bool[Tensor, "B L L"]) -> Float[Tensor, " B"]:
    """Over some of the pairs of each state."""
    return (torch.where(within, values, 0).sum((1, 2)) / within.sum((1, 2)).clamp_min(1)).float()


@dataclass(frozen=True)
class Labelling:
    """The job of a shard: draw its states, probe them."""

    model: Model
    states: States
    probe: Probing
    effort: Effort = field(default_factory=Effort)

    def __call__(self, unit: Unit) -> Outcome:
        """The labels of all states of the shard; absent if one of them cannot be labelled."""
        number, model = unit.start // len(unit), self.model
        if isinstance(self.states, StructureStates):
            own = self.states.model_of(number)
            model = replace(own, backbone=placed(own.backbone, str(device_of(self.model))))
        drawn, failures = bisect_failures(
            lambda _: self.effort.wanted(self.states.draw(model, unit.seed, number, len(unit))), [unit], lambda one: one.name
        )
        if failures:
            return Outcome(unit, None, tuple(failures))
        made, failures = bisect_failures(
            lambda some: label(model, some, self.probe, self.effort),
            drawn[0],
            lambda state: f"{unit.name}: {state.source} canvas {model.vocab.decode(state.tokens)}",
        )
        return Outcome(unit, None if failures else joined_labels(made), tuple(failures))


def make_labels(
    model: Model,
    states: States,
    folder: Path,
    count: int,
    *,
    seed: int = 0,
    probe: Probing | None = None,
    effort: Effort | None = None,
    shard: int = 256,
    part: tuple[int, int] = (0, 1),
    engine: Engine | None = None,
    quiet: bool = False,
) -> None:
    """The labels of at least `count` states in `folder`, in whole shards of `shard` states; only the missing shards are made.

    A shard is a function of (seed, its number, the backbone), whatever the engine. `part` = (k, n) makes every n-th shard, from the
    k-th: n processes with different k share the work. A shard with a state that cannot be labelled stays absent; the state is named on
    standard error, the other shards are made, and then `Incomplete` is raised.
    """
    if count < 1 or shard < 1:
        raise PairmiError(f"labels: expected at least one state and one in a shard, got {count} and {shard}")
    if not 0 <= part[0] < part[1]:
        raise PairmiError(f"labels: part {part[0]}/{part[1]} does not exist; expected 0/N to N-1/N")
    ensure_writable(folder, "labels: --out")
    probe, effort = probe or Probe(), effort or Effort()
    settings = describe(model, states, probe, seed, shard, effort)
    done = check(folder, settings)
    write_index(folder, part, done)
    mine = [number for number in range(-(-count // shard)) if number % part[1] == part[0]]
    todo = [number for number in mine if number not in done]
    task, about = task_name("labels", settings), {"settings": settings, "provenance": provenance()}
    units = (Unit(task, seed, number * shard, (number + 1) * shard, settings["backbone"]) for number in todo)
    there = shard * (len(mine) - len(todo))
    bar = tqdm(total=shard * len(mine), initial=there, desc="labels", unit="state", file=sys.stderr, disable=quiet)

    def report(failure: Failure) -> None:
        tqdm.write(f"labels: {failure}", file=sys.stderr)

    with bar:
        for outcome in settled((engine or Local()).run(Labelling(model, states, probe, effort), units), report):
            if outcome.value is not None:
                number = outcome.unit.start // shard
                write_shard(shard_file(folder, number), outcome.value, about | {"number": number, "unit": outcome.unit.name})
                write_index(folder, part, [number])
                bar.update(shard)
