"""Which code, which versions, which machine: what results and weights say of where they come from."""

import platform
import subprocess
from pathlib import Path

import torch

import pairmi

PACKAGE = Path(__file__).parent


def provenance() -> dict[str, str]:
    """The commit where the package is used from its own checkout, else its release; versions, machine."""
    found = {"pairmi": pairmi.__version__, "torch": torch.__version__, "python": platform.python_version(), "machine": platform.machine()}
    return {"commit": _commit(PACKAGE) or f"release {pairmi.__version__}", **found}


def _commit(package: Path) -> str | None:
    """HEAD of the checkout that has this package at src/pairmi beside its pyproject.toml; None in another repository, or without git."""
    top = package.parents[1]
    if package != top / "src" / "pairmi" or not (top / "pyproject.toml").is_file():
        return None
    try:
        told = subprocess.run(
            ["git", "rev-parse", "--show-toplevel", "HEAD"], cwd=top, capture_output=True, text=True, timeout=10, check=True
        ).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return None
    return told[1] if len(told) == 2 and Path(told[0]).resolve() == top.resolve() else None
