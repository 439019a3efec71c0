"""Any masked language model of `transformers` as a backbone."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pairmi.backbones.families import MASKED_LM, Family
from pairmi.backbones.products import make_rowwise, named, products_in
from pairmi.backbones.translation import Translation
from pairmi.types import Attention, PairmiError, Places, Prediction, Tokens, Vocab

DEPTH = ("num_hidden_layers", "n_blocks")  # what configurations call it
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
        if depth is None:
            raise PairmiError(f"MaskedLM: the configuration of a {network.config.model_type} tells none of {', '.join(DEPTH)}")
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
        last = self._last()
        self.narrow = isinstance(last, nn.Linear)  # whether logits can be computed where they are asked for, and nowhere else
        if self.narrow and _narrowed not in last._forward_pre_hooks.values():  # a network may be wrapped again
            last.register_forward_pre_hook(_narrowed)
        self.vocab: Vocab = translation.vocab
        self.depth = depth  # also the last layer that can be reported
        self.layers: tuple[int, ...] = (depth if layer is None else layer % (depth + 1),)  # reported as `hidden`, side by side
        self.attention = settings.attention
        positions = usable_positions(network)
        self.longest = None if positions is None else positions - translation.added

    @property
    def embeddings(self) -> Float[Tensor, "V E"] | None:
        """By what the last linear map makes logits of each of our symbols; None where there is no such map."""
        last = self._last()
        return last.weight[list(self.translation.ids.values())] if isinstance(last, nn.Linear) else None

    def vectors(self, tokens: Tokens, places: Places) -> Float[Tensor, "B Q E"]:
        """What the last linear map reads at some positions: logits are its products with the embeddings."""
        found = list[Tensor]()
        handle = self._last().register_forward_pre_hook(lambda _, inputs: found.append(inputs[0]))
        try:
            self.at(tokens, places)
        finally:
            handle.remove()
        return found[0].float()

    def _last(self) -> Any:
        return self.network.get_submodule(self.family.output) if self.family.output else self.network.get_output_embeddings()

    def reporting(self, layers: Sequence[int]) -> "MaskedLM":
        """The same weights, reporting the hidden states of these layers (0 = the embedding)."""
        if not layers or not all(0 <= layer <= self.depth for layer in layers):
            raise PairmiError(f"MaskedLM: layers must be one or more of 0..{self.depth}, got {list(layers)}")
        other = MaskedLM.__new__(MaskedLM)
        other.__dict__ = self.__dict__ | {"layers": tuple(layers)}
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to another process as configuration and weights: what transformers hangs on a network for its hidden states does not."""
        settings = replace(self.settings, device=str(next(self.parameters()).device))
        network = (type(self.network), self.network.config, self.network.state_dict(), self.layers)
        return _rebuilt, (*network, self.translation, settings, self.family)

    def at(self, tokens: Tokens, places: Places) -> Prediction:
        """One pass, of some positions of each row only; no logits are computed elsewhere."""
        return self.forward(tokens, places)

    def forward(self, tokens: Tokens, places: Places | None = None) -> Prediction:
        """One pass: normalised log-probabilities of the usable symbols, hidden states of the chosen layer, attention if asked for."""
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
        options: dict[str, Any] = {"output_attentions": True} if self.attention else {}
        if self.family.timed:
            options |= {"timesteps": torch.zeros(len(ids), device=ids.device), "return_dict": True}
        with products_in(self.dtype, tokens.device.type), _asking(asked if self.narrow else None):
            out = self.network(input_ids=ids, output_hidden_states=True, **options)
        logits = out.logits[:rows] if where is not None and self.narrow else self._ours(out.logits[:rows], where)
        hidden = torch.cat([self._ours(out.hidden_states[layer][:rows], where).float() for layer in self.layers], dim=2)
        attention = self._averaged(out.attentions)[:rows] if self.attention else None
        if attention is not None and places is not None:
            attention = gathered(gathered(attention, places).mT, places).mT
        return Prediction(tokens if places is None else tokens.gather(1, places), self.translation.log_probs(logits), hidden, attention)

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


def told_size(config: Any, names: Sequence[str]) -> Any:
    """What a configuration has under one of these names; None = nothing."""
    return next((size for size in (getattr(config, name, None) for name in names) if size), None)


def _rebuilt(kind: Any, config: Any, weights: dict[str, Tensor], layers: tuple[int, ...], *rest: Any) -> MaskedLM:
    """What travelled, put together again."""
    network = kind(config)
    network.load_state_dict(weights)
    return MaskedLM(network, *rest).reporting(layers)


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
    positions = told_size(network.config, LONGEST)
    tables = [module for name, module in network.named_modules() if name.endswith("position_embeddings")]
    padded = any(isinstance(table, nn.Embedding) and table.padding_idx is not None for table in tables)
    first = network.config.pad_token_id + 1 if padded or network.config.model_type == "esm" else 0
    return positions - first if isinstance(positions, int) and positions > 0 else None
