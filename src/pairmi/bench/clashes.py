"""Why boards from nothing go wrong: the first clash of each board, and whether exact mutual information would have kept the two apart."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from pairmi.bench.boards import Boards
from pairmi.decoding import Sampling, iter_decode
from pairmi.draw import Streams
from pairmi.mi.probe import Probe
from pairmi.selectors.mi_bound import MIBound
from pairmi.spec import Model, rule
from pairmi.tasks.sudoku.rules import cell_name, peers
from pairmi.types import Backbone, PairMatrix, PairmiError, Prediction, RowStreams, Step, Turn


@dataclass(frozen=True)
class Clash:
    """Two equal digits that see each other. `together`: both were filled in one pass; only then the last three are known."""

    board: int
    canvas: str  # before the pass
    cells: tuple[str, str]
    digit: int
    probability: float  # that the model gave the digit in the later cell, seeing the canvas
    together: bool
    predicted: float | None = None  # MI of the two, in nats, by the rule's own estimate
    exact: float | None = None  # by probing
    prevented: bool | None = None  # with exact MI the rule would not have chosen both


@dataclass(frozen=True)
class _Known:
    """An estimate that is already there."""

    matrix: PairMatrix

    def __call__(self, prediction: Prediction, backbone: Backbone, rng: RowStreams) -> PairMatrix:
        """The matrix."""
        return self.matrix


def first_clashes(model: Model, boards: Boards, spec: str, sampling: Sampling) -> dict[str, Any]:
    """Decode by `mi-bound`; of every board that comes out wrong the first clash, and how many are of which kind."""
    selector = rule(spec, model)
    if not isinstance(selector, MIBound):
        raise PairmiError(f"clashes: expected a mi-bound rule, got {spec!r}")
    seen: dict[int, Clash] = {}
    for step in iter_decode(model, boards.canvases, selector, sampling):
        for place, pair in _new_clashes(step):
            board = int(step.rows[place])
            if board not in seen:
                seen[board] = _explained(model, selector, step, place, pair)
    found = list(seen.values())
    kinds = {"boards": len(boards.canvases), "clashes": len(found)}
    kinds |= {"alone": sum(not clash.together for clash in found)}
    kinds |= {name: sum(clash.prevented is told for clash in found) for name, told in (("prevented", True), ("not_prevented", False))}
    return kinds | {"each": [asdict(clash) for clash in found]}


def _new_clashes(step: Step) -> Iterator[tuple[int, Int[Tensor, " 2"]]]:
    """Rows that contradict themselves after a pass, each with two cells that do; if possible two that were filled in this pass."""
    tokens, size = step.tokens, step.prediction.log_probs.shape[-1]
    equal = (tokens[:, :, None] == tokens[:, None, :]) & (tokens < size)[:, :, None] & peers().bool().triu()
    for place in torch.nonzero(equal.flatten(1).any(1))[:, 0].tolist():
        pairs = torch.nonzero(equal[place])
        fresh = step.committed[place][pairs].sum(1)
        yield place, pairs[int(fresh.argmax())]


def _explained(model: Model, selector: MIBound, step: Step, place: int, pair: Int[Tensor, " 2"]) -> Clash:
    state = step.prediction.rows(torch.tensor([place]))
    fresh = step.committed[place][pair]
    later = pair[int(fresh.long().argmax())]
    digit = int(step.tokens[place, later])
    first, second = pair.tolist()
    clash = Clash(
        board=int(step.rows[place]),
        canvas=model.vocab.decode(state.tokens[0]),
        cells=(cell_name(first), cell_name(second)),
        digit=digit + 1,
        probability=float(state.log_probs[0, later, digit].exp()),
        together=bool(fresh.all()),
    )
    if not clash.together:
        return clash
    rng = Streams(0, torch.zeros(1, dtype=torch.long))
    predicted, exact = (mi(state, model, rng).double() for mi in (selector.mi, Probe()))
    informed = replace(selector, mi=_Known(exact))(Turn(state, model, rng, {})).chosen[0]
    return replace(
        clash,
        predicted=float(predicted[0, first, second]),
        exact=float(exact[0, first, second]),
        prevented=not bool(informed[pair].all()),
    )
