"""A head of other weights of the same shape, taken as it is: what a head is still worth after its backbone went on learning."""

from pathlib import Path

from pairmi.backbones.checkpoint import load_tensors, save_tensors
from pairmi.backbones.identity import identify
from pairmi.model import Model


def taken_over(file: Path, model: Model, folder: Path) -> Path:
    """The file of the same head as if it had been made for this model, without the calibration and the rule that hold for its own."""
    tensors, about = load_tensors(file)
    out = folder / f"former-{file.stem}.safetensors"
    kept = {name: value for name, value in about.items() if name not in ("calibration", "rule")}
    folder.mkdir(parents=True, exist_ok=True)
    save_tensors(out, tensors, kept | {"backbone": identify(model)})
    return out
