"""Every annotated shape of pairmi is checked while its tests run."""

import os
from collections.abc import Iterator

os.environ["HF_HUB_OFFLINE"] = "1"

import jaxtyping
import pytest
import torch

import pairmi.tasks.sudoku.techniques  # noqa: F401 (with its solver, before the hook: numba compiles plain functions only, not wrapped ones)

jaxtyping.install_import_hook("pairmi", "beartype.beartype")  # before anything else imports pairmi
torch.set_num_threads(1)


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Without the run-time checks, as users run it: where an annotation would refuse before our own message does."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
