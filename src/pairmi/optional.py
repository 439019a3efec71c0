"""Packages of others that only some of us need."""

from importlib import import_module
from typing import Any

from pairmi.types import PairmiError


def needed(module: str, who: str, install: str) -> Any:
    """A module, imported when something asks for it; where its package is missing, one line says who needs it and how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise PairmiError(f"{who}: {module.partition('.')[0]} is missing; pip install {install}") from error
