"""Why generated boards go wrong: the pass after which nothing completes a board any more, and whether exact MI would have saved it."""

from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from pairmi.commit import Sampling
from pairmi.counting import Counting
from pairmi.decoding import iter_decode
from pairmi.draw import Streams
from pairmi.mi.probe import Probe
from pairmi.model import Model
from pairmi.selectors.mi_bound import MIBound
from pairmi.spec import rule
from pairmi.tasks.sudoku.rules import cell_name
from pairmi.tasks.sudoku.solver import solve
from pairmi.types import Meter, PairMatrix, PairmiError, Prediction, RowStreams, Turn
from studies.boards import Boards

Canvas = Int[Tensor, " 81"]


@dataclass(frozen=True)
class Failure:
    """The pass that left a board without a solution, and the fewest of its cells (1, 2, or 0 = three or more) that do so alone."""

    board: int
    canvas: str  # before the pass: it still had a solution
    filled: int  # cells in this pass
    cells: tuple[str, ...]
    digits: tuple[int, ...]
    probability: float | None = None  # of one cell: that the model gave its digit
    predicted: float | None = None  # of two: their MI in nats, by the rule's own estimate
    exact: float | None = None  # and by the full probe
    saved: bool | None = None  # of two or more: with exact MI the rule would not have chosen all that it takes


@dataclass(frozen=True)
class _Known:
    """An estimate that is already there."""

    matrix: PairMatrix

    def __call__(self, prediction: Prediction, backbone: Meter, rng: RowStreams) -> PairMatrix:
        """The matrix."""
        return self.matrix


def failure_analysis(model: Model, boards: Boards, spec: str, sampling: Sampling) -> dict[str, Any]:
    """Decode by `mi-bound`, filled at once and not verified; of every board that comes out wrong the pass that decided it, and why."""
    selector, backbone = rule(spec, model), Counting(model)
    if not isinstance(selector, MIBound) or sampling.verify:
        raise PairmiError(f"failure analysis: expected mi-bound, filled at once and not verified, got {spec!r}")
    ways = [[canvas] for canvas in boards.canvases]
    for step in iter_decode(model, boards.canvases, selector, sampling):
        for board, canvas in zip(step.rows.tolist(), step.tokens, strict=True):
            ways[board].append(canvas)
    wrong = torch.nonzero(~boards.good(torch.stack([way[-1] for way in ways])))[:, 0].tolist()
    found = [_explained(backbone, selector, board, *_last_hope(ways[board])) for board in wrong]
    counts = {"boards": len(ways), "wrong": len(wrong), "one": sum(len(failure.cells) == 1 for failure in found)}
    counts |= {name: sum(failure.saved is told for failure in found) for name, told in (("saved", True), ("not_saved", False))}
    counts["three"] = sum(not failure.cells for failure in found)
    return counts | {"each": [asdict(failure) for failure in found]}


def alive(canvas: Canvas) -> bool:
    """Whether something completes it."""
    return solve(canvas.numpy())[0] is not None


def _last_hope(way: list[Canvas]) -> tuple[Canvas, Canvas]:
    """Of a way to a wrong board the last canvas with a solution, and the next: no pass brings a solution back."""
    low, high = 0, len(way) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if alive(way[middle]) else (low, middle)
    return way[low], way[high]


def _explained(backbone: Counting, selector: MIBound, board: int, before: Canvas, after: Canvas) -> Failure:
    filled = torch.nonzero(before != after)[:, 0].tolist()

    def survives(cells: list[int]) -> bool:
        canvas = before.clone()
        canvas[cells] = after[cells]
        return alive(canvas)

    guilty = next((some for size in (1, 2) for some in combinations(filled, size) if not survives(list(some))), ())
    failure = Failure(
        board=board,
        canvas=backbone.vocab.decode(before),
        filled=len(filled),
        cells=tuple(map(cell_name, guilty)),
        digits=tuple(int(after[cell]) + 1 for cell in guilty),
    )
    prediction, rng = backbone(before[None]), Streams(0, torch.zeros(1, dtype=torch.long))
    if len(guilty) == 1:
        return replace(failure, probability=float(prediction.log_probs[0, guilty[0], after[guilty[0]]].exp()))
    predicted, exact = (mi(prediction, backbone, rng).double() for mi in (selector.mi, Probe(floor=0.0)))
    informed = replace(selector, mi=_Known(exact))(Turn(prediction, backbone, rng, {})).chosen[0]
    failure = replace(failure, saved=survives([cell for cell in filled if informed[cell]]))
    if not guilty:
        return failure
    return replace(failure, predicted=float(predicted[0][guilty]), exact=float(exact[0][guilty]))
