"""What a head costs: arithmetic and time, as shares of one pass of its backbone."""

from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode, bmm_flop, sdpa_flop_count

from pairmi.bench.speed import seconds
from pairmi.counting import Counting
from pairmi.draw import Streams
from pairmi.mi.head import LowRankHead
from pairmi.types import Backbone, PairwiseMI, Tokens


def _attention_flops(query: Any, key: Any, value: Any, *rest: Any, **options: Any) -> int:
    """From the shapes of its arguments; the counter of torch does not know the attention of CPUs."""
    return int(sdpa_flop_count(query, key, value))


def _added_flops(added: Any, left: Any, right: Any, **options: Any) -> int:
    """Likewise, of products that are added in place."""
    return int(bmm_flop(left, right))


UNCOUNTED = {  # by torch itself
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention_flops,
    torch.ops.aten.baddbmm_: _added_flops,
}


def flops(work: Callable[[], object]) -> int:
    """Floating-point operations in the matrix products and the attention of one call."""
    with FlopCounterMode(display=False, custom_mapping=UNCOUNTED) as counter:
        work()
    return int(counter.get_total_flops())


COLUMNS = ("canvases", "head", "parameters", "head_mflop", "flop_share", "head_ms", "pass_ms", "time_share", "rows")


def cost_table(heads: Mapping[str, tuple[Backbone, PairwiseMI]], states: Tokens, mask: int, rows: int = 256) -> list[dict[str, Any]]:
    """The costs on canvases of which nothing is known, on states such as these, and where heads that take hops up to some number of open
    positions just do: as many of each. Nothing costs more than the most expensive of them."""
    some = states[torch.linspace(0, len(states) - 1, rows).long()]
    empty = torch.full_like(some, mask)
    canvases = {"empty": empty, "test states": some}
    configs = [head.config for _, head in heads.values() if isinstance(head, LowRankHead) and head.config.hops]
    reaches = {reach for config in configs for reach in (config.reach, config.last_reach)}
    for reach in sorted(reaches & set(range(1, some.shape[1]))):
        canvases[f"{reach} open"] = torch.where(torch.arange(some.shape[1]) < reach, empty, 0)
    return [{"canvases": name} | record for name, tokens in canvases.items() for record in cost_records(heads, tokens)]


def cost_records(heads: Mapping[str, tuple[Backbone, PairwiseMI]], tokens: Tokens, rounds: int = 7, few: int = 2) -> list[dict[str, Any]]:
    """For each head, with the backbone that it reads, on these canvases: FLOPs, milliseconds and shares of a pass.

    Passes and estimates are timed alternately and the share is the median of the ratios, so that a machine that is busy with
    something else disturbs both alike. A head that takes more than a pass is timed on `few` rows only.
    """
    records: list[dict[str, Any]] = []
    with torch.inference_mode():
        for name, (backbone, head) in heads.items():
            sample, meter = backbone(tokens[:few]), Counting(backbone)
            arithmetic = flops(lambda: backbone(tokens[:few])), flops(lambda: head(sample, meter, Streams(0, torch.arange(few))))  # noqa: B023
            some = tokens if arithmetic[1] < arithmetic[0] else tokens[: max(few, len(tokens) // 16)]
            prediction, streams = backbone(some), Streams(0, torch.arange(len(some)))
            head(prediction, meter, streams)
            times = [(seconds(lambda: backbone(some)), seconds(lambda: head(prediction, meter, streams))) for _ in range(rounds)]  # noqa: B023
            parameters = sum(p.numel() for p in head.parameters()) if isinstance(head, torch.nn.Module) else 0
            record = {"head": name, "parameters": parameters, "rows": len(some), "time_share": median(own / one for one, own in times)}
            for n, what in enumerate(("pass", "head")):
                record |= {f"{what}_mflop": arithmetic[n] / few / 1e6, f"{what}_ms": 1e3 * median(pair[n] for pair in times)}
            records.append(record | {"flop_share": arithmetic[1] / arithmetic[0]})
    return records
