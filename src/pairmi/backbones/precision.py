"""Half precision for the matrix products of a network; all between them stays in float32."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from pairmi.types import PairmiError

PRECISIONS = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def named(precision: str, who: str) -> torch.dtype:
    """The type of this name."""
    if precision not in PRECISIONS:
        raise PairmiError(f"{who}(precision={precision!r}): expected one of {', '.join(PRECISIONS)}")
    return PRECISIONS[precision]


def products_in(dtype: torch.dtype, device: str) -> AbstractContextManager[Any]:
    """Matrix products in this type; for float32, as whoever is around it says."""
    return nullcontext() if dtype == torch.float32 else torch.autocast(device, dtype)


def in_full(device: str) -> AbstractContextManager[Any]:
    """Matrix products in float32, whatever is around."""
    return torch.autocast(device, torch.bfloat16, enabled=False) if torch.amp.is_autocast_available(device) else nullcontext()
