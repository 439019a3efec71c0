"""Labelled states with what the backbone says of them, kept by length: a batch has states of many lengths, a pass has one."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pairmi.counting import joined
from pairmi.store import Labels, triangle
from pairmi.types import Backbone, Prediction, Tokens


class LengthBuckets:
    """The backbone sees every state once; `half` keeps its hidden states in float16, if they are in its range.

    All is kept on the CPU, where there is room for it; what is asked for comes on the device.
    """

    def __init__(self, backbone: Backbone, labels: Labels, half: bool = False, device: str = "cpu") -> None:
        self.device = device
        self.bucket, self.row = torch.zeros(2, len(labels), dtype=torch.long)  # where each state is
        self.kept: list[tuple[Prediction, Tensor]] = []
        for number, (places, some) in enumerate(labels.by_length()):
            self.bucket[places], self.row[places] = number, torch.arange(len(places))
            self.kept.append((_predicted(backbone, some.tokens, half), some.mi))

    def among(self, index: Int[Tensor, " N"]) -> Iterator[tuple[Prediction, Float[Tensor, "B T"]]]:
        """Prediction and mutual information of some of the states, those of one length together."""
        buckets = self.bucket[index]
        for number in buckets.unique().tolist():
            known, mi = self.kept[number]
            rows = self.row[index[buckets == number]]
            some = known.rows(rows).to(self.device)
            yield replace(some, hidden=some.hidden.float()), mi[rows].to(self.device)


def typical_share(labels: Labels) -> float:
    """All mutual information that was measured over all that the entropies would allow: the sum of min(H_i, H_j) over the same pairs."""
    allowed = torch.zeros((), dtype=torch.double)
    for _, some in labels.by_length():
        for entropies, mi in zip(some.entropies.split(256), some.mi.split(256), strict=True):
            most = triangle(torch.minimum(entropies[:, :, None], entropies[:, None, :])).double()
            allowed += torch.where(mi.isfinite(), most, 0).sum()
    return float(labels.mi.double().nansum() / allowed.clamp_min(1e-12))


def _predicted(backbone: Backbone, tokens: Tokens, half: bool) -> Prediction:
    pieces = []
    with torch.no_grad():
        for piece in tokens.split(64):
            prediction = backbone(piece)
            fits = half and bool((prediction.hidden.abs() < torch.finfo(torch.float16).max).all())
            pieces.append(replace(prediction, hidden=prediction.hidden.half()) if fits else prediction)
    return joined(pieces)
