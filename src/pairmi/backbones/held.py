"""A network of `transformers` that the caller already holds, as a backbone, without touching it."""

import copy
from itertools import chain
from typing import Any

from torch import nn

from pairmi.backbones.families import MASKED_LM, Family
from pairmi.backbones.masked_lm import MaskedLM, Settings
from pairmi.backbones.translation import Translation
from pairmi.types import PairmiError


def twin(network: nn.Module) -> nn.Module:
    """A copy of the modules over the same tensors: what is frozen, wrapped or switched to evaluation in it stays as it was in the first.

    It takes no memory for weights. Training the first one changes the twin, too.
    """
    tensors = chain(network.parameters(), network.buffers())
    shared = {id(one): nn.Parameter(one.detach(), False) if isinstance(one, nn.Parameter) else one.detach() for one in tensors}
    return copy.deepcopy(network, shared)


def checked_network(network: Any) -> Any:
    """What can be a network of `transformers`."""
    if not isinstance(network, nn.Module) or next(network.parameters(), None) is None:
        raise PairmiError(f"model: expected a network of transformers with its weights, got {type(network).__name__}")
    return network


def held(network: Any, translation: Translation, family: Family = MASKED_LM) -> MaskedLM:
    """The caller's network as a backbone: where it lives, in its own precision."""
    place = str(next(checked_network(network).parameters()).device)
    return MaskedLM(twin(network), translation, Settings(device=place, precision="float32"), family)  # float32: as its weights are
