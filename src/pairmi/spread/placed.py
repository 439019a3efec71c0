"""A network on another device, or in another precision."""

from dataclasses import replace

from torch import nn

from pairmi.backbones.masked_lm import MaskedLM, Settings
from pairmi.model import Model, Wrapped
from pairmi.types import Backbone


def placed(backbone: Backbone, device: str, precision: str | None = None) -> Backbone:
    """A backbone, or a model, with its network on a device, in the precision asked for or the half precision it came in."""
    if isinstance(backbone, Model):
        return replace(backbone, backbone=placed(backbone.backbone, device, precision))
    if isinstance(backbone, MaskedLM):  # which unless told otherwise computes in another precision there
        loaded_in = backbone.settings.precision if backbone.settings.precision != "float32" else None
        settings = Settings(attention=backbone.attention, device=device, precision=precision or loaded_in)
        return MaskedLM(backbone.network, backbone.translation, settings, backbone.family).reporting(backbone.layers)
    return backbone.to(device) if isinstance(backbone, nn.Module) else backbone


def from_here(backbone: Backbone, device: str) -> Backbone:
    """The backbone for tokens on the CPU: they go where it lives, and its predictions come back."""
    return Wrapped(backbone, lambda tokens: backbone(tokens.to(device)).to(tokens.device))
