"""Random numbers that belong to a sequence and not to a batch, and symbols drawn where they are asked for."""

import zlib
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from pairmi.info import LARGE, PIECE
from pairmi.types import LogProbs, PerRow

_GOLDEN = -7046029254386353131  # 0x9E3779B97F4A7C15 as a signed number
_FIRST = -4658895280553007687  # 0xBF58476D1CE4E5B9
_SECOND = -7723592293110705685  # 0x94D049BB133111EB
BLOCK = 256  # symbols of a large alphabet that are looked at together


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
    turn: int | PerRow = 0  # one for all, or each row's own

    def rows(self, keep: Int[Tensor, " R"]) -> "Streams":
        """The streams of some of the rows."""
        return Streams(self.seed, self.index[keep], self.turn if isinstance(self.turn, int) else self.turn[keep])

    def at(self, turn: int) -> "Streams":
        """The same streams at another turn."""
        return Streams(self.seed, self.index, turn)

    def uniform(self, purpose: str, *shape: int) -> Float[Tensor, "B ..."]:
        """Float64 numbers in (0, 1) of shape [B, *shape]."""
        places = torch.arange(torch.Size(shape).numel(), device=self.index.device).view(1, *shape)
        return self._numbers(purpose, places)

    def uniform_at(self, purpose: str, rows: Int[Tensor, " N"], places: Int[Tensor, "N *K"]) -> Float[Tensor, "N *K"]:
        """Of the numbers of `uniform`, flattened within a row, those at some places of some rows."""
        return self.rows(rows)._numbers(purpose, places)

    def _numbers(self, purpose: str, places: Int[Tensor, "..."]) -> Float[Tensor, "N ..."]:
        key = _mixed(self.index.long() + _signed(_GOLDEN * (1 + self.seed)))
        for word in (self.turn, zlib.crc32(purpose.encode())):
            key = _mixed(key + (_signed(_GOLDEN * (1 + word)) if isinstance(word, int) else _GOLDEN * (1 + word)))
        bits = _mixed(key.view(-1, *(1 for _ in places.shape[1:])) + _GOLDEN * (1 + places))
        return (_shifted(bits, 12).double() + 0.5) * 2.0**-52  # with 53 bits the largest would be rounded to 1


def gumbel(uniform: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Standard Gumbel noise in float64, from uniform numbers."""
    return -torch.log(-torch.log(uniform))


def tempered(log_probs: Float[Tensor, "*N V"], temperature: float) -> Float[Tensor, "*N V"]:
    """log p(x)^(1/T), normalised: the distribution that symbols are drawn from. Rules never see it: they judge by the model's own."""
    return log_probs if temperature == 1 else functional.log_softmax(log_probs.double() / temperature, dim=-1)


def draw(
    log_probs: Float[Tensor, "N V"], rng: Streams, rows: Int[Tensor, " N"], first: Int[Tensor, " N"], purpose: str
) -> Int[Tensor, " N"]:
    """One symbol from each distribution; `first` is where the numbers of row `rows` begin that it may use.

    Over a small alphabet by Gumbel-max in float64, a number for every symbol. Over a large one by inverting the distribution function
    with one number: first the block of symbols, then the symbol in it.
    """
    size = log_probs.shape[1]
    if size < LARGE:
        places = first[:, None] + torch.arange(size, device=first.device)
        return (log_probs.double() + gumbel(rng.uniform_at(purpose, rows, places))).argmax(-1)
    p = functional.pad(log_probs.float().exp(), (0, -size % BLOCK)).unflatten(1, (-1, BLOCK))
    blocks = p.sum(2, dtype=torch.float64).cumsum(1)
    level = rng.uniform_at(purpose, rows, first) * blocks[:, -1]
    block = torch.searchsorted(blocks, level[:, None], right=True)[:, 0].clamp_max(blocks.shape[1] - 1)
    every = torch.arange(len(p), device=p.device)
    below = torch.where(block > 0, blocks[every, (block - 1).clamp_min(0)], 0)
    within = p[every, block].double().cumsum(1)
    inner = torch.searchsorted(within, (level - below)[:, None], right=True)[:, 0]
    last = (p[every, block] > 0).long().mul(torch.arange(BLOCK, device=p.device)).amax(1)  # rounding must not draw what has no chance
    return block * BLOCK + torch.minimum(inner, last)


def draw_at(
    log_probs: LogProbs, where: tuple[Int[Tensor, " N"], Int[Tensor, " N"]], rng: Streams, temperature: float = 1.0, greedy: bool = False
) -> Int[Tensor, " N"]:
    """A symbol for each of some positions (row, position), a bounded piece at a time: drawn, or the likeliest, the first of equals."""
    size, symbols = log_probs.shape[2], []
    for rows, places in zip(*(index.split(max(1, PIECE // size)) for index in where), strict=True):
        some = log_probs[rows, places]
        symbols.append(some.argmax(-1) if greedy else draw(tempered(some, temperature), rng, rows, places * size, "draw"))
    return torch.cat(symbols)
