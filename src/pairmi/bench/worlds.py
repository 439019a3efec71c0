"""Every rule, swept, in every exact world, plain and verified: the frontier without sampling noise."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import torch

from pairmi.backbones.tabular import Tabular
from pairmi.bench.exact import evaluate
from pairmi.bench.grid import all_settings
from pairmi.loading import load
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import parameters, parse, rule
from pairmi.tasks.tables import WORLDS


def full_probe(spec: str) -> str:
    """The same rule with nothing pruned, where it looks at pairs."""
    name, options = parse(spec)
    if name not in CATALOGUE or "mi" not in parameters(name) or "floor" in options or options.get("mi", "probe") != "probe":
        return spec
    return f"{spec}{',' if options else ':'}floor=0"


def sweep(
    worlds: Sequence[str] = tuple(WORLDS), rules: Sequence[str] | None = None, verify: Sequence[bool] = (False,)
) -> Iterator[dict[str, Any]]:
    """One record per world, rule and way of committing, from the empty canvas, with exact MI."""
    for world in worlds:
        model = load(world)
        assert isinstance(model.backbone, Tabular)
        empty = torch.full((model.backbone.length,), model.vocab.size)
        for spec in rules or all_settings():
            for verified in verify:
                result = evaluate(model.backbone, empty, rule(full_probe(spec), model), verified)
                agreement = 1 - result.total_variation
                yield {"world": world, "rule": spec, "verified": verified, "agreement": agreement} | asdict(result)


def best(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each rule the setting with the fewest passes among those that lose nothing (KL below 1e-9), else among those that lose least."""
    groups: dict[tuple[str, str, bool], list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault((record["world"], record["rule"].partition(":")[0], record["verified"]), []).append(record)
    found = [min(group, key=lambda r: (round(r["kl"], 9) if r["kl"] >= 1e-9 else 0.0, round(r["passes"], 9))) for group in groups.values()]
    return sorted(found, key=lambda r: (r["world"], r["verified"], r["kl"] >= 1e-9, r["passes"]))


def lossless(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of the best that lose nothing."""
    return [record for record in best(records) if record["kl"] < 1e-9]
