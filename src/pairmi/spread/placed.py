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
        found, home = self.backbone(tokens.to(self.device)), tokens.device
        attention = None if found.attention is None else found.attention.to(home)
        return Prediction(tokens, found.log_probs.to(home), found.hidden.to(home), attention)


def placed(backbone: Backbone, device: str) -> Backbone:
    """A backbone with its network on a device; a table stays where it is."""
    if isinstance(backbone, MaskedLM):  # which does this itself, and computes in another precision there
        moved = MaskedLM(backbone.network, backbone.translation, Settings(attention=backbone.attention, device=device))
        return moved.reporting(backbone.layers)
    if isinstance(backbone, nn.Module):
        return Placed(backbone.to(device), device)
    return backbone
