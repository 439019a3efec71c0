"""Which unknown positions of a masked sequence model depend on each other, and decoding that uses it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairmi.api import decode, mutual_information
    from pairmi.fitting.run import fit
    from pairmi.integrations.transformers import generate
    from pairmi.loading import load
    from pairmi.mapping import map
    from pairmi.model import Model
    from pairmi.tuning import calibrate, price, tune
    from pairmi.types import PairmiError

__version__ = "0.1.0"
_HOMES = {
    "Model": "pairmi.model",
    "PairmiError": "pairmi.types",
    "calibrate": "pairmi.tuning",
    "decode": "pairmi.api",
    "fit": "pairmi.fitting.run",
    "generate": "pairmi.integrations.transformers",
    "load": "pairmi.loading",
    "map": "pairmi.mapping",
    "mutual_information": "pairmi.api",
    "price": "pairmi.tuning",
    "tune": "pairmi.tuning",
}
__all__ = ["Model", "PairmiError", "calibrate", "decode", "fit", "generate", "load", "map", "mutual_information", "price", "tune"]


def __getattr__(name: str) -> Any:
    """Import torch only when something is used, so that `pairmi --help` is instant."""
    if name not in _HOMES:
        raise AttributeError(f"module 'pairmi' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
