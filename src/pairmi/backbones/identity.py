"""By what labels, heads and workers know a backbone: its weights, its table, or the name that its author gives it."""

from torch import nn

from pairmi.backbones.checkpoint import fingerprint
from pairmi.model import innermost
from pairmi.types import Backbone, PairmiError


def identify(backbone: Backbone) -> str:
    """A short name for what a backbone computes with; by an `identity`, such as "potts-v2", its author vouches for that."""
    backbone = innermost(backbone)
    given = getattr(backbone, "identity", None)
    if given is not None:
        return str(given)
    if isinstance(backbone, nn.Module) and (weights := backbone.state_dict()):
        return fingerprint(weights)
    raise PairmiError(
        f"{type(backbone).__name__}: has neither weights nor a table by which labels, heads and workers could know it; "
        "give it an attribute `identity`, a text that changes whenever what it computes does"
    )
