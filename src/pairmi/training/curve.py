"""The learning curve of a run as a picture."""

from collections.abc import Sequence
from pathlib import Path

from pairmi.training.loop import read_log
from pairmi.types import PairmiError


def draw_curve(log: Path, file: Path) -> None:
    """Every logged figure against the step, one panel each."""
    try:
        import matplotlib
    except ImportError as error:
        raise PairmiError("curve: matplotlib is missing; pip install 'pairmi[plot]'") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    records = read_log(log)
    names: Sequence[str] = [name for name in records[-1] if name not in ("step", "seconds", "rate")]
    figure, axes = plt.subplots(1, len(names), figsize=(4 * len(names), 3), squeeze=False, layout="constrained")
    for axis, name in zip(axes.flat, names, strict=True):
        axis.plot([r["step"] for r in records if name in r], [r[name] for r in records if name in r], lw=1.2)
        axis.set(title=name, xlabel="step")
        axis.grid(alpha=0.25)
    figure.savefig(file, dpi=150)
    plt.close(figure)
