"""Any masked language model of `transformers` as a backbone."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pairmi.backbones.precision import named, products_in
from pairmi.backbones.rowwise import make_rowwise
from pairmi.backbones.translation import Translation
from pairmi.types import Attention, PairmiError, Prediction, Tokens, Vocab


@dataclass(frozen=True)
class Settings:
    """How a masked language model is run."""

    layer: int | None = None  # whose hidden states are reported: 0 = the embedding; None = the last
    attention: bool = False  # report attention weights
    device: str | None = None  # None = a GPU where there is one, else the CPU
    precision: str | None = None  # of the matrix products; None = float16 on a GPU, float32 on a CPU


class MaskedLM(nn.Module):
    """A network with its translation; tokens and predictions live where the network does.

    On a CPU it computes in float32 and a row's bits do not depend on its batch (`Rowwise`). On a GPU the matrix products are
    in float16: of the half precisions the one with more digits (on AntiBERTy its log-probabilities are 10 times closer to those of
    float32 than bfloat16's); the stream between them and the softmax stay in float32. There, a library picks the
    kernel by the shape of the batch, so that rows agree between batches up to rounding only.
    """

    length = None  # any, up to `longest`

    def __init__(self, network: Any, translation: Translation, settings: Settings) -> None:
        super().__init__()
        place, depth, layer = chosen_device(settings.device), network.config.num_hidden_layers, settings.layer
        dtype = named(settings.precision or ("float16" if place.type == "cuda" else "float32"), "MaskedLM")
        if layer is not None and not -depth - 1 <= layer <= depth:
            raise PairmiError(
                f"MaskedLM(layer={layer}): the model has layers 0 (its embedding) to {depth}, or -1 to {-depth - 1} from the end"
            )
        if translation.largest >= network.config.vocab_size:
            raise PairmiError(
                f"MaskedLM: the tokenizer uses ids up to {translation.largest}, the model knows 0..{network.config.vocab_size - 1}; "
                "they do not belong together"
            )
        make_rowwise(network)  # which only matters on a CPU, in float32
        self.network = network.to(place).eval().requires_grad_(False)
        self.translation, self.settings, self.dtype = translation, settings, dtype
        self.vocab: Vocab = translation.vocab
        self.layers: tuple[int, ...] = (
            depth if layer is None else layer % (depth + 1),
        )  # whose states are reported as `hidden`, side by side
        self.attention = settings.attention
        positions = usable_positions(network)
        self.longest = None if positions is None else positions - translation.added

    @property
    def width(self) -> int:
        """Of the hidden states of one layer."""
        return int(self.network.config.hidden_size)

    @property
    def depth(self) -> int:
        """The number of blocks, and the last layer that can be reported."""
        return int(self.network.config.num_hidden_layers)

    def matrices(self) -> dict[str, int]:
        """The parameters that are matrices inside the blocks, with the number of matrices that are stacked in each."""
        return {name: 1 for name, parameter in self.named_parameters() if ".layers." in name and parameter.ndim == 2}

    def reporting(self, layers: Sequence[int]) -> "MaskedLM":
        """The same weights, reporting the hidden states of these layers (0 = the embedding)."""
        if not layers or not all(0 <= layer <= self.depth for layer in layers):
            raise PairmiError(f"MaskedLM: layers must be one or more of 0..{self.depth}, got {list(layers)}")
        other = copy.copy(self)
        other.layers = tuple(layers)
        return other

    def __copy__(self) -> "MaskedLM":
        other = MaskedLM.__new__(MaskedLM)
        other.__dict__ = self.__dict__.copy()
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to another process as configuration and weights: what transformers hangs on a network for its hidden states does not."""
        settings = replace(self.settings, device=str(next(self.parameters()).device))
        return _rebuilt, (type(self.network), self.network.config, self.network.state_dict(), self.translation, settings, self.layers)

    def forward(self, tokens: Tokens) -> Prediction:
        """One pass: normalised log-probabilities of the usable symbols, hidden states of the chosen layer, attention if asked for."""
        if self.longest is not None and tokens.shape[1] > self.longest:
            raise PairmiError(
                f"MaskedLM: a canvas of {tokens.shape[1]} positions is too long for this model; at most {self.longest} "
                f"(and its {self.translation.added} special tokens); cut the sequence"
            )
        ids = self.translation.inputs(tokens)
        if self.attention and len(ids) == 1:
            ids = ids.expand(2, -1)  # eager attention multiplies a lone row by another kernel: give it a twin
        with products_in(self.dtype, tokens.device.type):
            out = self.network(input_ids=ids, output_hidden_states=True, output_attentions=self.attention)
        log_probs = self.translation.log_probs(out.logits[: len(tokens)])
        hidden = torch.cat([self.translation.within(out.hidden_states[layer])[: len(tokens)].float() for layer in self.layers], dim=2)
        attention = self._averaged(out.attentions)[: len(tokens)] if self.attention else None
        return Prediction(tokens, log_probs, hidden, attention)

    def _averaged(self, layers: tuple[Float[Tensor, "B H T T"], ...]) -> Attention:
        """Over heads and layers, between our positions: what goes to special tokens is left out, so rows sum to less than 1."""
        mean = torch.stack([layer.float().mean(1) for layer in layers]).mean(0)
        return self.translation.within(self.translation.within(mean).transpose(1, 2)).transpose(1, 2)


def _rebuilt(
    kind: Any, config: Any, weights: dict[str, Tensor], translation: Translation, settings: Settings, layers: tuple[int, ...]
) -> MaskedLM:
    """What travelled, put together again."""
    network = kind(config)
    network.load_state_dict(weights)
    return MaskedLM(network, translation, settings).reporting(layers)


def chosen_device(name: str | None) -> torch.device:
    """The device of this name; None = a GPU where there is one, else the CPU."""
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError:
        raise PairmiError(f"device={name!r}: expected cpu, cuda or cuda:N") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise PairmiError(f"device={name!r}: torch sees no GPU here; use device='cpu'")
    return device


def usable_positions(network: Any) -> int | None:
    """The most tokens, special ones included, that a network has positions for; None = no limit.

    The family of RoBERTa, and with it ESM, numbers positions from after the padding id.
    """
    positions = network.config.to_dict().get("max_position_embeddings")
    tables = [
        module for name, module in network.named_modules() if name.endswith("position_embeddings") and isinstance(module, nn.Embedding)
    ]
    first = 0
    if network.config.model_type == "esm" or any(table.padding_idx is not None for table in tables):
        first = network.config.pad_token_id + 1
    return positions - first if isinstance(positions, int) and positions > 0 else None
