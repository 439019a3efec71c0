"""What the stages of a fit share: the model, the data, the clock, and what has been decided and measured."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxtyping import Int
from torch import Tensor

from pairmi import tuning
from pairmi.backbones.checkpoint import write_whole
from pairmi.bench.ledger import Ledger
from pairmi.fitting.clock import Clock
from pairmi.fitting.data import Data
from pairmi.model import Model
from pairmi.spec import estimate
from pairmi.spread.local import Local
from pairmi.spread.units import Engine
from pairmi.types import PairwiseMI

ENDS = {"labels": 0.38, "head": 0.55, "calibrate": 0.70, "tune": 0.82, "check": 0.88, "price": 0.97}  # of the time; then the report
SWEPT = "budget=0.005|0.01|0.02|0.04|0.07|0.12|0.2|0.35|0.6"  # of mi-bound, from safe to fast


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

    def until(self, stage: str) -> float:
        """The seconds that are left until a stage should end, whoever was slow before it."""
        return ENDS[stage] * self.clock.total - self.clock.spent

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

    @property
    def family(self) -> list[str]:
        """The settings that are tuned."""
        return tuning.family_of(f"mi-bound:{'charge=calibrated,' if self.model.calibration is not None else ''}{SWEPT}")

    @property
    def mi(self) -> PairwiseMI:
        """The estimate that rules look at."""
        return estimate("head" if self.model.head is not None else "probe", self.model)

    def price(self, rule: str, count: int) -> dict[str, Any]:
        """What a rule loses on so many sequences."""
        return tuning.price(self.model, self.data.canvases, rule, seed=self.seed, sequences=count).about()
