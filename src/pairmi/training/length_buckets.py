"""Labelled states with what the backbone says of them, kept by length: a batch has states of many lengths, a pass has one."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pairmi.counting import joined
from pairmi.mi.head import summary
from pairmi.store import Labels, triangle
from pairmi.types import Backbone, Prediction, Tokens


class LengthBuckets:
    """The backbone sees every state once; `half` keeps its hidden states in float16, if they are in its range.

    Of what it says over a large alphabet `brief` keeps what heads read of it, see `summary`.

    The states of some grids may have a backbone of their own, as sequences of a structure have; they are kept apart. All is kept on the
    CPU, where there is room for it; what is asked for comes on the device.
    """

    def __init__(
        self,
        backbone: Backbone,
        labels: Labels,
        half: bool = False,
        device: str = "cpu",
        own: Mapping[str, Backbone] | None = None,
        brief: bool = False,
    ) -> None:
        self.device = device
        self.bucket, self.row = torch.zeros(2, len(labels), dtype=torch.long)  # where each state is
        self.kept: list[tuple[Backbone, Prediction, Tensor]] = []
        for places, some in labels.by_length():
            owners = [grid if grid in (own or {}) else "" for grid in some.grid]
            for owner in dict.fromkeys(owners):
                mine = torch.tensor([n for n, other in enumerate(owners) if other == owner])
                self.bucket[places[mine]], self.row[places[mine]] = len(self.kept), torch.arange(len(mine))
                whose = own[owner] if own and owner else backbone
                self.kept.append((whose, _predicted(whose, some.tokens[mine], half, brief), some.mi[mine]))

    def among(self, index: Int[Tensor, " N"]) -> Iterator[tuple[Prediction, Float[Tensor, "B T"], Backbone]]:
        """Prediction and mutual information of some of the states, those of one length and backbone together, and this backbone."""
        buckets = self.bucket[index]
        for number in buckets.unique().tolist():
            backbone, known, mi = self.kept[number]
            rows = self.row[index[buckets == number]]
            some = known.rows(rows).to(self.device)
            yield replace(some, hidden=some.hidden.float()), mi[rows].to(self.device), backbone


def typical_share(labels: Labels) -> float:
    """All mutual information that was measured over all that the entropies would allow: the sum of min(H_i, H_j) over the same pairs."""
    allowed = torch.zeros((), dtype=torch.double)
    for _, some in labels.by_length():
        for entropies, mi in zip(some.entropies.split(256), some.mi.split(256), strict=True):
            most = triangle(torch.minimum(entropies[:, :, None], entropies[:, None, :])).double()
            allowed += torch.where(mi.isfinite(), most, 0).sum()
    return float(labels.mi.double().nansum() / allowed.clamp_min(1e-12))


def _predicted(backbone: Backbone, tokens: Tokens, half: bool, brief: bool) -> Prediction:
    pieces = []
    with torch.no_grad():
        for piece in tokens.split(64):
            prediction = summary(backbone(piece)) if brief else backbone(piece)
            fits = half and bool((prediction.hidden.abs() < torch.finfo(torch.float16).max).all())
            pieces.append(replace(prediction, hidden=prediction.hidden.half()) if fits else prediction)
    return joined(pieces)
