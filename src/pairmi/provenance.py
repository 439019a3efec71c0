"""Which code, which versions, which machine: what results and weights say of where they come from."""

import platform
import subprocess
from pathlib import Path

import torch


def provenance() -> dict[str, str]:
    """Commit, versions, machine."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    ).stdout.strip()
    return {"commit": commit or "unknown", "torch": torch.__version__, "python": platform.python_version(), "machine": platform.machine()}
