"""A network on another device than the tokens that it is asked about."""

from dataclasses import dataclass

from torch import nn

from pairmi.backbones.masked_lm import MaskedLM, Settings
from pairmi.types import Backbone, Prediction, Tokens, Vocab


@dataclass(frozen=True)
class Placed:
    """Takes tokens to the backbone's device, and its prediction back to theirs."""

    backbone: Backbone
    device: str

    @property
    def vocab(self) -> Vocab:
        """The alphabet."""
        return self.backbone.vocab

    @property
    def length(self) -> int | None:
        """The only length it takes; None = any."""
        return self.backbone.length

    def __call__(self, tokens: Tokens) -> Prediction:
        """One pass over there."""
        return self.backbone(tokens.to(self.device)).to(tokens.device)


def placed(backbone: Backbone, device: str, precision: str | None = None) -> Backbone:
    """A backbone with its network on a device, in the precision asked for or the half precision it came in; a table stays where it is."""
    if isinstance(backbone, MaskedLM):  # which does this itself, and unless told otherwise computes in another precision there
        loaded_in = backbone.settings.precision if backbone.settings.precision != "float32" else None
        settings = Settings(attention=backbone.attention, device=device, precision=precision or loaded_in)
        moved = MaskedLM(backbone.network, backbone.translation, settings)
        return moved.reporting(backbone.layers)
    if isinstance(backbone, nn.Module):
        return Placed(backbone.to(device), device)
    return backbone
