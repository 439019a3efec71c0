"""Fixed-sequence testing: of settings from safe to fast the last one that keeps a limit, with a promise."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pairmi.types import PairmiError


@dataclass(frozen=True)
class Evidence:
    """What was measured of one setting, and the upper confidence bound that decides."""

    rule: str
    loss: float  # in the unit of the limit
    bound: float  # one-sided, of the mean
    passes: float
    interval: tuple[float, float]  # 95 %, of the loss

    def passed(self, limit: float) -> bool:
        """Whether the setting keeps the limit."""
        return self.bound <= limit


def fixed_sequence(settings: Iterable[str], measured: Callable[[str], Evidence], limit: float) -> tuple[Evidence | None, list[Evidence]]:
    """Test settings in their order, stop at the first that fails; the last that passed, or None, and all that were tested.

    The first setting of the order whose true loss exceeds the limit must pass its own test before anything beyond it, or it, can be
    shipped: the chance of that is at most 1 - confidence, however many settings there are (Learn then Test, Angelopoulos et al. 2021).
    """
    if not limit >= 0:
        raise PairmiError(f"tune: the limit must be >= 0, got {limit}")
    tested: list[Evidence] = []
    for spec in settings:
        tested.append(measured(spec))
        if not tested[-1].passed(limit):
            break
    passed = [one for one in tested if one.passed(limit)]
    return (passed[-1] if passed else None), tested
