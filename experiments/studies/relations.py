"""How much mutual information positions in one relation share, and how well estimates know it."""

from collections.abc import Mapping
from typing import Any

from jaxtyping import Float
from torch import Tensor

from pairmi.bench import fidelity
from pairmi.store import Labels, triangle


def by_relation(
    labels: Labels, relations: Mapping[str, Float[Tensor, "L L"]], mask: int, estimates: Mapping[str, Float[Tensor, "S T"]] | None = None
) -> list[dict[str, Any]]:
    """The mean mutual information of masked pairs in each relation, how well estimates explain it, and how much of their error is there."""
    within, records = labels.known(mask), []
    for name, graph in relations.items():
        some = within & (triangle(graph[None])[0] > 0)
        record: dict[str, Any] = {"relation": name, "pairs": int(some.sum()), "mean": float(labels.mi[some].double().mean())}
        for estimate, values in (estimates or {}).items():
            error = (values - labels.mi).double().square()
            record[f"{estimate}: R2"] = fidelity.r2(values[some], labels.mi[some])
            record[f"{estimate}: share of error"] = float(error[some].sum() / error[within].sum())
        records.append(record)
    return records
