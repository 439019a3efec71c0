"""Any masked language model of `transformers` as a backbone."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pairmi.backbones.families import MASKED_LM, Family
from pairmi.backbones.precision import named, products_in
from pairmi.backbones.rowwise import make_rowwise
from pairmi.backbones.translation import Translation
from pairmi.types import Attention, PairmiError, Places, Prediction, Tokens, Vocab

DEPTH, WIDTH = ("num_hidden_layers", "n_blocks"), ("hidden_size", "hidden_dim")  # what configurations call them
LONGEST = ("max_position_embeddings", "max_sequence_length", "model_length")
_ASKED: ContextVar[Places | None] = ContextVar("outputs that are asked for", default=None)  # None = all


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

    def __init__(self, network: Any, translation: Translation, settings: Settings, family: Family = MASKED_LM) -> None:
        super().__init__()
        place, depth, layer = chosen_device(settings.device), told_size(network.config, DEPTH), settings.layer
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
        self.translation, self.settings, self.dtype, self.family = translation, settings, dtype, family
        last = network.get_submodule(family.output) if family.output else network.get_output_embeddings()
        self.narrow = isinstance(last, nn.Linear)  # whether logits can be computed where they are asked for, and nowhere else
        if self.narrow and _narrowed not in last._forward_pre_hooks.values():  # a network may be wrapped again
            last.register_forward_pre_hook(_narrowed)
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
        return told_size(self.network.config, WIDTH)

    @property
    def depth(self) -> int:
        """The number of blocks, and the last layer that can be reported."""
        return told_size(self.network.config, DEPTH)

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
        weights = self.network.state_dict()
        return _rebuilt, (type(self.network), self.network.config, weights, self.translation, settings, self.family, self.layers)

    def forward(self, tokens: Tokens) -> Prediction:
        """One pass: normalised log-probabilities of the usable symbols, hidden states of the chosen layer, attention if asked for."""
        return self._predicted(tokens, None)

    def at(self, tokens: Tokens, places: Places) -> Prediction:
        """The same of some positions of each row only; no logits are computed elsewhere."""
        return self._predicted(tokens, places)

    def _predicted(self, tokens: Tokens, places: Places | None) -> Prediction:
        if self.longest is not None and tokens.shape[1] > self.longest:
            raise PairmiError(
                f"MaskedLM: a canvas of {tokens.shape[1]} positions is too long for this model; at most {self.longest} "
                f"(and its {self.translation.added} special tokens); cut the sequence"
            )
        shift, rows = self.family.shift, len(tokens)
        every = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens) if places is None and shift else places
        where = None if every is None else self.translation.outputs(every, shift)
        ids, asked = self.translation.inputs(tokens), where
        if self.attention and rows == 1:  # eager attention multiplies a lone row by another kernel: give it a twin
            ids, asked = ids.expand(2, -1), None if where is None else where.expand(2, -1)
        with products_in(self.dtype, tokens.device.type), _asking(asked if self.narrow else None):
            out = self.network(input_ids=ids, output_hidden_states=True, **self._options(len(ids), ids.device))
        logits = out.logits[:rows] if where is not None and self.narrow else self._ours(out.logits[:rows], where)
        hidden = torch.cat([self._ours(out.hidden_states[layer][:rows], where).float() for layer in self.layers], dim=2)
        attention = self._averaged(out.attentions)[:rows] if self.attention else None
        if attention is not None and places is not None:
            attention = gathered(gathered(attention, places).mT, places).mT
        return Prediction(tokens if places is None else tokens.gather(1, places), self.translation.log_probs(logits), hidden, attention)

    def _options(self, rows: int, device: torch.device) -> dict[str, Any]:
        """What else the network is called with."""
        attention = {"output_attentions": True} if self.attention else {}
        return attention | ({"timesteps": torch.zeros(rows, device=device), "return_dict": True} if self.family.timed else {})

    def _ours(self, values: Float[Tensor, "B T X"], where: Places | None) -> Float[Tensor, "B Q X"]:
        return self.translation.within(values) if where is None else gathered(values, where)

    def _averaged(self, layers: tuple[Float[Tensor, "B H T T"], ...]) -> Attention:
        """Over heads and layers, between our positions: what goes to special tokens is left out, so rows sum to less than 1."""
        mean = torch.stack([layer.float().mean(1) for layer in layers]).mean(0)
        return self.translation.within(self.translation.within(mean).transpose(1, 2)).transpose(1, 2)


@contextmanager
def _asking(where: Places | None) -> Iterator[None]:
    """While it is entered, in this thread, networks compute logits of these outputs only."""
    before = _ASKED.set(where)
    try:
        yield
    finally:
        _ASKED.reset(before)


def _narrowed(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """What the last linear map is given: the outputs that are asked for."""
    where = _ASKED.get()
    return inputs if where is None else (gathered(inputs[0], where), *inputs[1:])


def gathered(values: Float[Tensor, "B T X"], where: Places) -> Float[Tensor, "B Q X"]:
    """What stands at some positions of each row."""
    return values.gather(1, where[:, :, None].expand(-1, -1, values.shape[2]))


def told_size(config: Any, names: Sequence[str]) -> int:
    """A size that a configuration has under one of these names."""
    found = [getattr(config, name, None) for name in names]
    if not any(found):
        raise PairmiError(f"MaskedLM: the configuration of a {config.model_type} tells none of {', '.join(names)}")
    return next(int(size) for size in found if size)


def _rebuilt(
    kind: Any,
    config: Any,
    weights: dict[str, Tensor],
    translation: Translation,
    settings: Settings,
    family: Family,
    layers: tuple[int, ...],
) -> MaskedLM:
    """What travelled, put together again."""
    network = kind(config)
    network.load_state_dict(weights)
    return MaskedLM(network, translation, settings, family).reporting(layers)


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
    positions = next((size for size in (getattr(network.config, name, None) for name in LONGEST) if size), None)
    tables = [
        module for name, module in network.named_modules() if name.endswith("position_embeddings") and isinstance(module, nn.Embedding)
    ]
    first = 0
    if network.config.model_type == "esm" or any(table.padding_idx is not None for table in tables):
        first = network.config.pad_token_id + 1
    return positions - first if isinstance(positions, int) and positions > 0 else None
