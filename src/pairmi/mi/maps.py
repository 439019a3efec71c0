"""What depends on what in a complete sequence: four ways to measure it, and the normal forms of the result."""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pairmi.counting import Counting
from pairmi.draw import Streams, gumbel
from pairmi.info import apc
from pairmi.mi.contexts import Contexts, averaged_mi
from pairmi.mi.jacobian import categorical_jacobian
from pairmi.mi.masking import masking_information
from pairmi.mi.probe import Probe
from pairmi.mi.substitution import log_odds_changes
from pairmi.types import Backbone, PairmiError

By = Literal["mi", "jacobian", "substitution", "masking"]
Symmetrise = Literal["mean", "max", "none"]
UNITS = {"mi": "nats", "jacobian": "norm of log-probabilities", "substitution": "change of log-odds", "masking": "nats"}
TITLES = {"mi": "mutual information", "jacobian": "categorical Jacobian", "substitution": "substitution", "masking": "masking"}
SMALL, FEW = 64, 16  # symbols: up to which all are tried, and how many otherwise


@dataclass(frozen=True)
class Way:
    """How a map is made.

      mi            mutual information, averaged over contexts in which two of `blocks` random blocks are unknown; `deals` times
      jacobian      the categorical Jacobian: every symbol at i, the change of all beliefs
      substitution  another symbol at i: the largest change of the log-odds at j, where one of `blocks` random blocks is unknown
      masking       what the symbol at i tells of j, where one of `blocks` random blocks is unknown: the cheapest, blocks (L + 1) rows
    Before symmetrising, entries are [changed i, observed j].
    """

    by: By = "mi"
    apc: bool = False
    symmetrise: Symmetrise = "mean"  # `none` leaves both directions
    symbols: int | None = None  # tried at a position (jacobian, substitution), its own included; None = all up to 64, else 16
    drawn: bool = False  # these are drawn from the model's beliefs there; else they are the likeliest
    blocks: int = 4
    deals: int = 2
    floor: float = 0.01  # nats that pruning may change in an entry (mi)
    batch_rows: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, known in (("by", self.by, get_args(By)), ("symmetrise", self.symmetrise, get_args(Symmetrise))):
            if value not in known:
                raise PairmiError(f"map({name}={value!r}): expected one of {', '.join(known)}")
        if self.symbols is not None and self.symbols < 2:
            raise PairmiError(f"map(symbols={self.symbols}): at least 2, the one in the sequence and another")
        Contexts(self.blocks, self.deals, self.seed), Probe("joint", self.floor, self.batch_rows)  # they refuse what cannot be

    @property
    def directed(self) -> bool:
        """Whether the result has two directions."""
        return self.symmetrise == "none"

    def measure(self, backbone: Backbone, sequence: Int[Tensor, " L"]) -> tuple[Float[Tensor, "L L"], int]:
        """The map of a sequence, on its device, and the rows that were evaluated for it."""
        meter = Counting(backbone, self.batch_rows)
        with torch.inference_mode():
            matrix = self._measured(meter, sequence)
            meter.complain()
            if self.symmetrise != "none":
                other = matrix.t()
                matrix = 0.5 * (matrix + other) if self.symmetrise == "mean" else torch.maximum(matrix, other)
            return (apc(matrix) if self.apc else matrix), meter.rows

    def _measured(self, meter: Counting, sequence: Int[Tensor, " L"]) -> Float[Tensor, "L L"]:
        if self.by == "mi":
            return averaged_mi(meter, sequence, Contexts(self.blocks, self.deals, self.seed), Probe("joint", self.floor, self.batch_rows))
        if self.by == "masking":
            return masking_information(meter, sequence, self.blocks, self.seed)
        symbols = self.symbols_of(meter, sequence)
        if self.by == "jacobian":
            return categorical_jacobian(meter, sequence, symbols, self.batch_rows, self.symmetrise == "mean")
        return log_odds_changes(meter, sequence, symbols, self.blocks, self.batch_rows, self.seed)

    def symbols_of(self, meter: Counting, sequence: Int[Tensor, " L"]) -> Int[Tensor, "L S"]:
        """What is tried at each position: the symbol that is there, then others; which ones costs L rows, unless it is all."""
        length, size, device = len(sequence), meter.vocab.size, sequence.device
        count = min(size, self.symbols or (size if size <= SMALL else FEW))
        others = torch.zeros(length, size, dtype=torch.float64, device=device)
        if count < size:
            places = torch.arange(length, device=device)
            for some in places.split(self.batch_rows):
                found = meter(sequence.repeat(len(some), 1).scatter_(1, some[:, None], size)).log_probs
                others[some] = found[torch.arange(len(some), device=device), some].double()
            if self.drawn:  # without replacement: the highest of log p + Gumbel noise
                others += gumbel(Streams(self.seed, places).uniform("symbols", size))
        others.scatter_(1, sequence[:, None], torch.inf)
        return others.sort(dim=1, descending=True, stable=True).indices[:, :count]
