"""By what labels, heads and workers know a backbone: its weights, its table, or the name that its author gives it."""

from typing import Protocol, runtime_checkable

from torch import nn

from pairmi.backbones.checkpoint import fingerprint
from pairmi.model import innermost
from pairmi.types import Backbone, PairmiError


@runtime_checkable
class Identified(Protocol):
    """A backbone whose author vouches for what it computes: another `identity` is another function."""

    @property
    def identity(self) -> str:
        """Such as "potts-v2"."""
        ...


def identify(backbone: Backbone) -> str:
    """A short name for what a backbone computes with."""
    backbone = innermost(backbone)
    if isinstance(backbone, Identified):
        return str(backbone.identity)
    if isinstance(backbone, nn.Module) and (weights := backbone.state_dict()):
        return fingerprint(weights)
    raise PairmiError(
        f"{type(backbone).__name__}: has neither weights nor a table by which labels, heads and workers could know it; "
        "give it an attribute `identity`, a text that changes whenever what it computes does"
    )
