"""Random numbers that belong to a sequence and not to a batch, and one symbol per position from log-probabilities."""

import zlib
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pairmi.types import LogProbs, PerRow, RowStreams, Tokens

_GOLDEN = -7046029254386353131  # 0x9E3779B97F4A7C15 as a signed number
_FIRST = -4658895280553007687  # 0xBF58476D1CE4E5B9
_SECOND = -7723592293110705685  # 0x94D049BB133111EB


def _signed(x: int) -> int:
    """A Python integer modulo 2^64, as a signed number."""
    return (x + 2**63) % 2**64 - 2**63


def _shifted(x: Tensor, bits: int) -> Tensor:
    """An unsigned shift to the right of signed 64-bit integers."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _mixed(x: Int[Tensor, "*N"]) -> Int[Tensor, "*N"]:
    """The finaliser of SplitMix64 (Steele et al. 2014): every bit of the input moves every bit of the output."""
    x = (x ^ _shifted(x, 30)) * _FIRST
    x = (x ^ _shifted(x, 27)) * _SECOND
    return x ^ _shifted(x, 31)


@dataclass(frozen=True)
class Streams:
    """One random stream per row, a pure function of (seed, sequence index, turn, purpose, place).

    Nothing is consumed: the same question has the same answer, whatever the batch, its size or its order.
    """

    seed: int
    index: PerRow  # of each row's sequence among all that are decoded
    turn: int = 0

    def rows(self, keep: Int[Tensor, " R"]) -> "Streams":
        """The streams of some of the rows."""
        return Streams(self.seed, self.index[keep], self.turn)

    def at(self, turn: int) -> "Streams":
        """The same streams at another turn."""
        return Streams(self.seed, self.index, turn)

    def uniform(self, purpose: str, *shape: int) -> Float[Tensor, "B ..."]:
        """Float64 numbers in (0, 1) of shape [B, *shape]."""
        key = _mixed(self.index.long() + _signed(_GOLDEN * (1 + self.seed)))
        for word in (self.turn, zlib.crc32(purpose.encode())):
            key = _mixed(key + _signed(_GOLDEN * (1 + word)))
        places = torch.arange(torch.Size(shape).numel(), device=key.device).view(1, *shape)
        bits = _mixed(key.view(-1, *(1 for _ in shape)) + _GOLDEN * (1 + places))
        return (_shifted(bits, 12).double() + 0.5) * 2.0**-52  # with 53 bits the largest would be rounded to 1


def gumbel(rng: RowStreams, purpose: str, *shape: int) -> Float[Tensor, "B ..."]:
    """Standard Gumbel noise in float64."""
    return -torch.log(-torch.log(rng.uniform(purpose, *shape)))


def draw(log_probs: LogProbs, rng: RowStreams, purpose: str = "draw") -> Tokens:
    """One symbol for every position, distributed as its log-probabilities say (Gumbel-max, in float64)."""
    return (log_probs.double() + gumbel(rng, purpose, *log_probs.shape[1:])).argmax(-1)


def likeliest(log_probs: LogProbs) -> Tokens:
    """The likeliest symbol of every position, the first of equals."""
    return log_probs.argmax(-1)
