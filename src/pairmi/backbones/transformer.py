"""A bidirectional pre-norm transformer over a fixed number of positions: our own masked diffusion model."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from pairmi.backbones.products import Rowwise, in_full, named, products_in
from pairmi.counting import joined
from pairmi.types import Attention, PairmiError, Prediction, Tokens, Vocab

CACHED_ROWS = 32  # whose activations stay in the cache of a CPU


@dataclass(frozen=True)
class TransformerConfig:
    """The shape of a `Transformer`; the defaults are the Sudoku model's."""

    symbols: str = "123456789"
    blanks: str = "._0"
    length: int = 81
    width: int = 128
    depth: int = 8
    heads: int = 4

    def __post_init__(self) -> None:
        if min(self.length, self.width, self.depth, self.heads) < 1 or self.width % self.heads:
            raise PairmiError(f"TransformerConfig: sizes must be >= 1 and width a multiple of heads, got {self}")


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Standard attention; written out for training in half precision on a CPU, where the fused one takes half of a step to go back."""
    if not (torch.is_grad_enabled() and q.device.type == "cpu" and torch.is_autocast_enabled("cpu")):
        return functional.scaled_dot_product_attention(q, k, v)
    weights: Tensor = ((q @ k.transpose(-1, -2)).float() * q.shape[-1] ** -0.5).softmax(-1)
    return weights @ v


class Block(nn.Module):
    """Attention and a GELU network, each behind a layer norm, each added to the stream."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width, bias=False)
        self.qkv = Rowwise(width, 3 * width, bias=False)
        self.sharpness = nn.Parameter(torch.full((heads, 1, 1), 2.0))
        self.mix = Rowwise(width, width, bias=False)
        self.mlp_norm = nn.LayerNorm(width, bias=False)
        self.up = Rowwise(width, 4 * width, bias=False)
        self.down = Rowwise(4 * width, width, bias=False)
        nn.init.zeros_(self.mix.weight)
        nn.init.zeros_(self.down.weight)

    def queries_keys_values(self, x: Float[Tensor, "B L D"]) -> tuple[Tensor, Tensor, Tensor]:
        """Three tensors [B, heads, L, D / heads]; queries and keys have unit scale, so that attention cannot saturate early."""
        batch, length, width = x.shape
        q, k, v = self.qkv(self.attention_norm(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        size = (width // self.heads,)
        return self.sharpness * functional.rms_norm(q, size), functional.rms_norm(k, size), v

    def forward(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B L D"]:
        """The stream after this block."""
        x = x + self.mix(attend(*self.queries_keys_values(x)).transpose(1, 2).flatten(2))
        out: Tensor = x + self.down(functional.gelu(self.up(self.mlp_norm(x))))
        return out


class Transformer(nn.Module):
    """Marginals of all masked positions; it is told nothing of a task but a learned embedding per position."""

    def __init__(self, config: TransformerConfig, report_attention: bool = False, precision: str = "float32") -> None:
        super().__init__()
        self.config, self.report_attention = config, report_attention
        self.length, self.width, self.depth = config.length, config.width, config.depth
        self.dtype = named(precision, "Transformer")  # of the matrix products in the blocks
        self.layers: tuple[int, ...] = (config.depth,)  # which streams are reported as `hidden`, side by side
        self.vocab = Vocab(tuple(config.symbols), config.blanks)
        self.symbol = nn.Embedding(self.vocab.size + 1, config.width)
        self.position = nn.Parameter(torch.empty(config.length, config.width))
        self.blocks = nn.ModuleList(Block(config.width, config.heads) for _ in range(config.depth))
        self.norm = nn.LayerNorm(config.width, bias=False)
        self.readout = Rowwise(config.width, self.vocab.size, bias=False)
        nn.init.normal_(self.symbol.weight, std=0.5)
        nn.init.normal_(self.position, std=0.5)
        nn.init.zeros_(self.readout.weight)

    def reporting(self, layers: Sequence[int]) -> "Transformer":
        """The same weights, reporting the streams after these blocks (0 = before the first) as hidden states."""
        if not layers or not all(0 <= layer <= self.depth for layer in layers):
            raise PairmiError(f"Transformer: layers must be one or more of 0..{self.depth}, got {list(layers)}")
        other = copy.copy(self)
        other.layers = tuple(layers)
        return other

    def streams(self, tokens: Tokens) -> list[Tensor]:
        """The residual stream [B, L, D] before the first block and after each."""
        if tokens.shape[1] != self.length:
            raise PairmiError(f"Transformer: expected canvases of {self.length} positions, got {tokens.shape[1]}")
        streams = [self.symbol(tokens) + self.position]
        with products_in(self.dtype, tokens.device.type):
            for block in self.blocks:
                streams.append(block(streams[-1]))
        return streams

    def forward(self, tokens: Tokens) -> Prediction:
        """One pass; outside of training, on a CPU, a few rows at a time."""
        if torch.is_grad_enabled() or tokens.device.type != "cpu" or len(tokens) <= CACHED_ROWS:
            return self._pass(tokens)
        return joined([self._pass(piece) for piece in tokens.split(CACHED_ROWS)])

    def _pass(self, tokens: Tokens) -> Prediction:
        streams = self.streams(tokens)
        attention = self._attention(streams) if self.report_attention else None
        hidden = torch.cat([streams[layer] for layer in self.layers], dim=2) if len(self.layers) > 1 else streams[self.layers[0]]
        with in_full(tokens.device.type):  # whatever the precision of the blocks
            log_probs = functional.log_softmax(self.readout(self.norm(streams[-1])), dim=-1)
        return Prediction(tokens, log_probs, hidden, attention)

    def _attention(self, streams: list[Tensor]) -> Attention:
        """Attention weights averaged over blocks and heads."""
        total = torch.zeros((), device=streams[0].device)
        for block, x in zip(self.blocks, streams, strict=False):
            assert isinstance(block, Block)
            q, k, _ = block.queries_keys_values(x)
            total = total + ((q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5).softmax(-1).mean(1)
        return total / len(self.blocks)
