"""The kinds of heads, and how one comes out of a file."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from pairmi.mi.head import LowRankConfig, LowRankHead
from pairmi.mi.pair_mlp import PairMLPConfig, PairMLPHead
from pairmi.mi.trained_on import TrainedOn
from pairmi.model import innermost
from pairmi.types import Backbone, PairmiError, Places, Tokens

Head = LowRankHead | PairMLPHead
HEADS: dict[str, tuple[type[Head], type[LowRankConfig] | type[PairMLPConfig]]] = {
    LowRankHead.kind: (LowRankHead, LowRankConfig),
    PairMLPHead.kind: (PairMLPHead, PairMLPConfig),
}
UNTRAINED = "none"  # a file without tensors, for a backbone without hidden states: its calibration and its rule are for probes


@runtime_checkable
class Layered(Protocol):
    """A backbone that can report the hidden states of any of its layers, 0 (the embedding) to `depth`."""

    depth: int
    layers: tuple[int, ...]  # that it reports

    def reporting(self, layers: Sequence[int]) -> Backbone:
        """The same weights, reporting these layers side by side."""
        ...


@runtime_checkable
class Embedded(Backbone, Protocol):
    """A backbone whose logits are products of a vector at each position with one for each symbol."""

    @property
    def embeddings(self) -> Float[Tensor, "V E"] | None:
        """Those of the symbols; None where it has none after all."""
        ...

    def vectors(self, tokens: Tokens, places: Places) -> Float[Tensor, "B Q E"]:
        """Those at some positions of each row."""
        ...


@runtime_checkable
class Related(Protocol):
    """A backbone that knows, without looking at a canvas, how its positions are related, such as by a structure."""

    length: int
    relation_width: int  # how many numbers it knows of a pair

    def relations(self, rows: Int[Tensor, " R"]) -> Float[Tensor, "R L E"]:
        """What it knows of the pairs of these positions with all."""
        ...


def related(head: Head, backbone: Backbone) -> Head:
    """The head for the positions of this backbone, where it reads what the backbone knows of pairs."""
    inner = innermost(backbone)
    if isinstance(head, LowRankHead) and head.config.relations and isinstance(inner, Related):
        return head.among(inner.relations, inner.length)
    return head


def reporting(backbone: Backbone, layers: Sequence[int]) -> Backbone:
    """A backbone that reports these layers; one that offers no choice reports what it always does, and `layers` must be empty."""
    if isinstance(backbone, Layered):
        return backbone.reporting(layers)
    if layers:
        raise PairmiError(f"{type(backbone).__name__}: offers no choice of layers (no `reporting`), got {list(layers)}; leave them out")
    return backbone


def build(about: Mapping[str, Any], tensors: Mapping[str, Tensor], file: object) -> Head:
    """The head that a file describes, frozen."""
    if about.get("kind") != "head" or about.get("head") not in HEADS:
        raise PairmiError(
            f"head: {file} holds no head (its description says kind={about.get('kind')!r}); train one with 'pairmi train head'"
        )
    kind, config = HEADS[about["head"]]
    head: Head = kind(config(**about["config"]))  # type: ignore[arg-type]
    fill(head, tensors, f"head: the tensors in {file}")
    head.trained_on = TrainedOn.of(about)
    return head


def fill(network: nn.Module, tensors: Mapping[str, Tensor], what: str) -> None:
    """Give a network weights from a file that describes it, and freeze it."""
    if not take(network, tensors):
        raise PairmiError(f"{what} do not fit its own description; fetch or train it again")
    network.requires_grad_(False).eval()


def take(network: nn.Module, tensors: Mapping[str, Tensor], fresh: str = "\0") -> bool:
    """Give a network these weights if they fit; those whose names begin with `fresh` may be lacking and stay as they are."""
    expected = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    fits = all(expected.get(name) == tuple(tensor.shape) for name, tensor in tensors.items())
    if fits := fits and all(name in tensors or name.startswith(fresh) for name in expected):
        network.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, strict=False)
    return fits


def among_layers(weight: Float[Tensor, "I A"], read: Sequence[int], layers: Sequence[int], width: int) -> Float[Tensor, "I C"]:
    """A map of some layers and of what comes after them, as one of all these layers; it takes nothing from those that are new."""
    *streams, others = weight.split([width] * len(read) + [weight.shape[1] - width * len(read)], dim=1)
    known = dict(zip(read, streams, strict=True))
    return torch.cat([*(known.get(layer, torch.zeros_like(streams[0])) for layer in layers), others], dim=1)
