"""`pairmi bench head`: heads and controls against probed mutual information on grids or families that no head has seen."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pairmi.backbones.identity import identify
from pairmi.bench import fidelity, report
from pairmi.counting import Counting
from pairmi.draw import Streams
from pairmi.info import entropy, pair_matrix, pairs
from pairmi.loading import with_head
from pairmi.mi.proxies import Attended, Shuffled, Structural
from pairmi.model import Model
from pairmi.store import Labels, grown, triangle
from pairmi.types import Backbone, PairMatrix, PairmiError, PairwiseMI, Prediction, RowStreams

LEVELS = 10  # bins of the masked fraction
COLUMNS = ("estimate", "states", "pairs", "mean", "r2", "spearman", "mae", "auroc")


def entropy_product(prediction: Prediction, backbone: Backbone, rng: RowStreams) -> PairMatrix:
    """H_i H_j: what an estimate that knows nothing of dependence can say."""
    entropies = entropy(prediction.log_probs)
    return pair_matrix(entropies[:, :, None] * entropies[:, None, :], prediction.masked)


def constant(prediction: Prediction, backbone: Backbone, rng: RowStreams) -> PairMatrix:
    """One for all pairs."""
    return pairs(prediction.masked).double()


def contenders(model: Model, heads: Sequence[str]) -> Iterator[tuple[str, Model, PairwiseMI, bool]]:
    """Name, the model that reports what it reads, the estimate, and whether its scale is fitted (controls have none of their own)."""
    for file in heads:
        guided = with_head(model, file)
        head = cast(PairwiseMI, guided.head)
        yield Path(file).stem, guided, head, False
        yield f"{Path(file).stem}, shuffled", guided, Shuffled(head), True
    yield "constant", model, constant, True
    yield "entropy product", model, entropy_product, True
    yield "attention", model, Attended(), True
    if model.graph is not None:
        yield "structural", model, Structural(model.graph), True


def predicted_by(mi: PairwiseMI, model: Model, labels: Labels, batch: int = 64) -> Float[Tensor, "S T"]:
    """The upper triangles of an estimate in all states."""
    out, longest = torch.zeros_like(labels.mi), labels.tokens.shape[1]
    for places, some in labels.by_length():
        for index in torch.arange(len(some)).split(batch):
            matrices = mi(model(some.tokens[index]), Counting(model), Streams(0, places[index]))
            out[places[index]] = triangle(grown(matrices, longest)).float()
    return out


def groups(labels: Labels) -> dict[str, Bool[Tensor, " S"]]:
    """All states, those of each source, and those of each masked fraction."""
    place = ((labels.masked.double() / labels.lengths * LEVELS).ceil().long() - 1).clamp_min(0)
    found = {"all": torch.ones(len(labels), dtype=torch.bool)}
    found |= {name: torch.tensor([source == name for source in labels.source]) for name in dict.fromkeys(labels.source)}
    found |= {f"masked {n / LEVELS:.1f}-{(n + 1) / LEVELS:.1f}": place == n for n in place.unique().tolist()}
    return found


def scores(
    predicted: Float[Tensor, "S T"], true: Float[Tensor, "S T"], within: Bool[Tensor, "S T"], linked: Bool[Tensor, " T"] | None
) -> dict[str, Any]:
    """The figures of one estimate in some states; AUROC is the mean over states, so that only pairs of one canvas are compared."""
    flat, truth = predicted[within], true[within]
    found = {"states": len(true), "pairs": len(truth), "mean": float(truth.mean()), "r2": fidelity.r2(flat, truth)}
    found |= {"spearman": fidelity.spearman(flat, truth), "mae": fidelity.mae(flat, truth)}
    if linked is not None:
        each = [fidelity.auroc(p[w], linked[w]) for p, w in zip(predicted, within, strict=True)]
        known = [value for value in each if value is not None]
        found["auroc"] = sum(known) / len(known) if known else float("nan")
    return found


def fidelity_records(model: Model, labels: Labels, settings: Mapping[str, Any], heads: Sequence[str]) -> list[dict[str, Any]]:
    """One record for every group of states and every estimate; the model must report attention. `probe` is the truth itself."""
    if settings["backbone"] != identify(model):
        raise PairmiError(f"bench head: the labels were made by weights {settings['backbone']}, but the model has {identify(model)}")
    if not len(labels):
        raise PairmiError("bench head: no labelled state of a test grid; make more labels")
    within = labels.known(model.vocab.size)
    linked = None if model.graph is None else triangle(model.graph[None])[0] > 0
    estimates = {"probe": labels.mi}
    for name, reader, mi, fitted in contenders(model, heads):
        values = predicted_by(mi, reader, labels)
        estimates[name] = values * fidelity.scale_to(values[within], labels.mi[within]) if fitted else values
    return [
        {"group": group, "estimate": name} | scores(values[some], labels.mi[some], within[some], linked)
        for group, some in groups(labels).items()
        if int(within[some].sum()) > 1
        for name, values in estimates.items()
    ]


def draw_calibration(curves: Mapping[str, Sequence[Mapping[str, Any]]], file: Path) -> None:
    """Predicted against true, both in nats, with the diagonal."""
    plt = report.pyplot()
    figure, axis = plt.subplots(figsize=(5, 5), layout="constrained")
    top = max((max(point["predicted"], point["true"]) for curve in curves.values() for point in curve), default=1.0)
    axis.plot([0, top], [0, top], color="tab:gray", lw=0.8)
    for name, curve in curves.items():
        axis.plot([point["predicted"] for point in curve], [point["true"] for point in curve], marker="o", ms=4, lw=1.2, label=name)
    axis.set(xlabel="predicted mutual information (nats)", ylabel="probed (nats)")
    axis.legend(frameon=False)
    axis.grid(alpha=0.25)
    report.save(figure, file)


def calibration_curves(model: Model, labels: Labels, heads: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """For each head the mean truth against the mean prediction."""
    within, curves = labels.known(model.vocab.size), {}
    for file in heads:
        guided = with_head(model, file)
        values = predicted_by(cast(PairwiseMI, guided.head), guided, labels)
        curves[Path(file).stem] = fidelity.calibration(values[within], labels.mi[within])
    return curves
