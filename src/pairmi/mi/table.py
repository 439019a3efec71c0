"""Learnt tables: how a drawn symbol moves the marginals of the other members of a set, from the hidden states of one pass."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pairmi.deferring import WAITS
from pairmi.info import entropy
from pairmi.mi.doubt import Doubt, drawn_before
from pairmi.mi.head import check_prediction, gelu
from pairmi.mi.hops import sigmoid
from pairmi.types import Meter, PairmiError, PerRow, Positions, Prediction, State

FEATURES = ("symbol", "form")
TOGETHER = 8  # members whose features are one product
ALIGNED = 16  # numbers: where matrices of other widths begin depends on how many come before, and how they are multiplied on that
LOWEST = -12.0  # log-probabilities below are alike to the head


@dataclass(frozen=True)
class TableConfig:
    """The shape of a `TableHead`; the defaults are the Sudoku head's."""

    width: int  # of one layer of the backbone
    symbols: int
    length: int  # the one that the backbone takes
    layers: int = 1  # how many layers of the backbone are reported side by side
    inner: int = 96
    rank: int = 24  # features of a symbol at a position
    forms: int = 16  # bilinear forms of a pair, of the same rank as those of the MI head
    form_rank: int = 16
    places: int = 12  # learned features of where two positions are
    paths: int = 6  # kinds of paths through a third position
    hidden: int = 80  # of the network for a drawn symbol and a symbol that it may move
    channels: int = 16  # of its messages
    pooled: int = 64  # of the network that reads the pooled messages
    doubt: int = 0  # of the network that says what a shift is expected to lose; 0 = there is none

    def __post_init__(self) -> None:
        if min(size for name, size in asdict(self).items() if name != "doubt") < 1 or self.doubt < 0:
            raise PairmiError(f"TableConfig: sizes must be >= 1, got {self}")


@dataclass(frozen=True)
class Features:
    """What is known of some positions (the first dimensions), by themselves."""

    symbol: Float[Tensor, "... V F"]
    form: Float[Tensor, "... G"]  # what the bilinear forms of a pair are made of


class TableHead(nn.Module):
    """log q(x_j = w | x_i = v, ...) ~ log p_j(w) + shift, normalised, with a shift that pools the messages of all drawn (i, v).

    A symbol at a position has a few features, from the layer-normed hidden states, the marginal, the entropy and the place. A message of
    (i, v) to (j, w) is a small network of those of v and w at both, their product, bilinear forms of the pair, where the two
    are, whether v = w, and paths: sum over open k of l_ik l_kj p_k(w) p_k(v) / (1 - p_k(v)), what excluding v at k would give
    to w there. Over the drawn members each channel is pooled by its most negative, its most positive and its sum; a network of these and
    p_j(w), the same for all w, gives the shift. It begins as minmax of the first channel. Drawn symbols alone are
    computed, and only what the next member hears: O(m^2) small products for a set of m.
    """

    kind: ClassVar[str] = "tables"
    matrices: ClassVar[tuple[str, ...]] = (
        "inner.weight",
        "symbol.weight",
        "project.weight",
        "part.weight",
        "second.weight",
        "weigh.weight",
    )

    def __init__(self, config: TableConfig) -> None:
        super().__init__()
        self.config = config
        self._links: tuple[tuple[object, ...], Tensor] | None = None
        size, hidden = config.symbols, config.hidden
        self.inner = nn.Linear(config.layers * config.width + size + 1, config.inner)
        self.position = nn.Parameter(0.5 * torch.randn(config.length, config.inner))
        self.symbol = nn.Linear(config.inner, size * config.rank)
        self.belief = nn.Linear(2, config.rank, bias=False)  # p and log p of the symbol itself
        self.project = nn.Linear(config.inner, config.forms * config.form_rank)
        signs = 1.0 - 2.0 * (torch.arange(config.form_rank) % 2)
        self.signs = nn.Parameter(config.form_rank**-0.5 * signs.expand(config.forms, -1).clone())
        self.part = nn.Linear(config.rank, 4 * hidden, bias=False)
        self.pair = nn.Parameter(0.3 * torch.randn(config.length, config.length, config.places))
        self.link = nn.Linear(config.places, config.paths)
        self.place = nn.Linear(config.places + config.forms, hidden)
        self.product = nn.Linear(config.rank + config.paths, hidden, bias=False)
        self.same = nn.Parameter(0.3 * torch.randn(hidden))
        self.second = nn.Linear(hidden, hidden)
        self.message = nn.Linear(hidden, config.channels)
        self.combine = nn.Linear(3 * config.channels + 2, config.pooled)
        self.weigh = nn.Linear(config.pooled, config.pooled)
        self.shift = nn.Linear(config.pooled, 1, bias=False)
        self.doubt = Doubt(config.pooled, config.doubt) if config.doubt else None
        nn.init.zeros_(self.shift.weight)
        nn.init.normal_(self.message.weight, std=0.1 * hidden**-0.5)

    def about(self) -> dict[str, Any]:
        """Its shape, for the file that it is kept in."""
        return asdict(self.config)

    def features(self, hidden: Float[Tensor, "B N D"], log_probs: Float[Tensor, "B N V"], where: Int[Tensor, "B N"]) -> Features:
        """Of some positions of each row, the same number in all."""
        config = self.config
        normed = functional.layer_norm(hidden.float().unflatten(2, (config.layers, config.width)), (config.width,)).flatten(2)
        known = torch.cat([normed, log_probs.float().exp(), entropy(log_probs).float()[:, :, None]], dim=2)
        inner = gelu(linear(self.inner, known) + self.position[where])
        symbol = linear(self.symbol, inner).unflatten(2, (config.symbols, config.rank)) + self._beliefs(log_probs) @ self.belief.weight.t()
        return Features(symbol, linear(self.project, inner))

    def _beliefs(self, log_probs: Float[Tensor, "*N V"]) -> Float[Tensor, "*N V 2"]:
        return torch.stack([log_probs.exp(), log_probs.clamp_min(LOWEST) / 4], dim=-1).float()

    def links(self) -> Float[Tensor, "P L L"]:
        """How much of what happens at a position is felt at another; of frozen weights it is computed once."""
        weights = (self.pair, self.link.weight, self.link.bias)
        frozen = not torch.is_grad_enabled() and not any(x.is_inference() for x in weights)
        key = tuple((x.device, x.data_ptr(), x._version) for x in weights) if frozen else None
        if key is not None and self._links is not None and self._links[0] == key:
            return self._links[1]
        strength = sigmoid(self.link(self.pair)).permute(2, 0, 1)
        strength = strength * (1 - torch.eye(self.config.length, device=strength.device))
        self._links = None if key is None else (key, strength)
        return strength

    def messages(
        self,
        sender: Features,  # [..., N senders, 1 or R receivers, ...]
        drawn: Int[Tensor, "..."],  # the symbol of each
        receiver: Features,
        places: Float[Tensor, "... P"],  # of the pair
        paths: Float[Tensor, "... V C"],
    ) -> Float[Tensor, "... V K"]:
        """Of each drawn (sender, symbol) to each symbol of the receiver; the leading dimensions of all broadcast."""
        forms, symbol = self.config.forms, drawn[..., None, None]
        mine, yours = (torch.take_along_dim(x.symbol, symbol, dim=-2) for x in (sender, receiver))  # of the drawn symbol
        bilinear = (sender.form * receiver.form * self.signs.flatten()).unflatten(-1, (forms, -1)).sum(-1)
        say, hear, sent, heard = self.part.weight.chunk(4)
        pair = joined(places[..., None, :], (bilinear / (2 + bilinear.abs()))[..., None, :], mine, yours)
        known = joined(mine * receiver.symbol, paths, sender.symbol, receiver.symbol)
        total = multiplied(known, (self.product.weight, sent, heard))
        total = total.add_(multiplied(pair, (self.place.weight, say, hear), self.place.bias))
        total = total.add_(functional.one_hot(drawn, self.config.symbols)[..., None] * self.same).relu_()
        return linear(self.message, linear(self.second, total).relu_())

    def moved(
        self, log_p: Float[Tensor, "... V"], low: Float[Tensor, "... V K"], high: Float[Tensor, "... V K"], total: Float[Tensor, "... V K"]
    ) -> Float[Tensor, "... V"]:
        """The shifted log-probabilities from the pooled messages."""
        return self.read(log_p, low, high, total)[0]

    def read(
        self, log_p: Float[Tensor, "... V"], low: Float[Tensor, "... V K"], high: Float[Tensor, "... V K"], total: Float[Tensor, "... V K"]
    ) -> tuple[Float[Tensor, "... V"], Float[Tensor, "... V I"]]:
        """The same, and what the network saw in them, for its doubt."""
        beliefs = self._beliefs(log_p).expand(*low.shape[:-1], -1)
        known = torch.cat([low, high, total / (1 + total.abs() / 4), beliefs], dim=-1)
        inner = linear(self.weigh, linear(self.combine, known).relu()).relu()
        shift = low[..., 0] + high[..., 0] + linear(self.shift, inner)[..., 0]
        return functional.log_softmax(log_p + shift, dim=-1), inner

    def begin(self, prediction: Prediction, members: Int[Tensor, "B M"], backbone: Meter) -> State:
        """The features of the members, and the marginals of all open positions, for the paths through them."""
        config = self.config
        check_prediction(self, prediction, config.layers * config.width, config.symbols, config.length)
        row, count = torch.arange(len(members), device=members.device)[:, None], members.shape[1]
        where = functional.pad(members, (0, -count % TOGETHER)).unflatten(1, (-1, TOGETHER))
        hidden, log_probs = (x[row[:, :, None], where].flatten(0, 1) for x in (prediction.hidden, prediction.log_probs))
        with torch.inference_mode(False), torch.no_grad():
            known = self.features(hidden, log_probs, where.flatten(0, 1))
            give, keep = exclusion(prediction.log_probs, prediction.masked)
            keep = functional.pad(keep, (0, -keep.shape[2] % ALIGNED, 0, -keep.shape[1] % ALIGNED))
        state = {name: getattr(known, name).unflatten(0, where.shape[:2]).flatten(1, 2)[:, :count] for name in FEATURES}
        own = prediction.log_probs[row, members].float()
        nobody, unknown = torch.zeros_like(members), prediction.masked.sum(1, keepdim=True).float()
        spoke = {"sender": nobody, "drawn": nobody, "count": nobody[:, 0], "unknown": unknown}
        return state | spoke | {"members": members, "log_probs": own, "give": give, "keep": keep}

    def after(self, state: State, rank: PerRow, symbol: PerRow, backbone: Meter) -> State:
        """What was drawn is remembered in this order; it is heard when somebody asks. Who waits (`WAITS`) is not."""
        count = state["count"]
        sender, drawn = (state[n].scatter(1, count[:, None], x[:, None]) for n, x in (("sender", rank), ("drawn", symbol)))
        return dict(state) | {"sender": sender, "drawn": drawn, "count": count + (symbol != WAITS)}

    def shifted(self, state: State, rank: PerRow) -> Float[Tensor, "B V"]:
        """Messages of all that were drawn, each by products of its own: no bit of a row depends on its batch mates."""
        return self._heard(state, rank)[0]

    def doubted(self, state: State, rank: PerRow) -> tuple[Float[Tensor, "B V"], Float[Tensor, " B"]]:
        """The same, with what drawing from it is expected to lose, in nats."""
        log_q, inner = self._heard(state, rank)
        if self.doubt is None:
            raise PairmiError("TableHead: these tables do not know what they lose; teach them with experiments/coupling_doubt.py")
        if inner is None:
            return log_q, torch.zeros_like(log_q[:, 0])
        row, (sender, drawn, told) = torch.arange(len(rank), device=rank.device), self._spoke(state)
        with torch.inference_mode(False), torch.no_grad():
            heard = drawn_before(state["log_probs"][row[:, None], sender], drawn, told.float(), state["unknown"])[:, -1]
            return log_q, self.doubt(self.doubt.known(state["log_probs"][row, rank], log_q, inner, heard))

    def _spoke(self, state: State) -> tuple[Int[Tensor, "B N"], Int[Tensor, "B N"], Bool[Tensor, "B N"]]:
        """The ranks of those that were drawn, in this order, with their symbols, as many for all rows, and who of them there is."""
        count = int(state["count"].max()) if len(state["count"]) else 0
        told = torch.arange(count, device=state["count"].device) < state["count"][:, None]
        return state["sender"][:, :count].where(told, 0), state["drawn"][:, :count].where(told, 0), told

    def _heard(self, state: State, rank: PerRow) -> tuple[Float[Tensor, "B V"], Float[Tensor, "B V I"] | None]:
        """The shifted marginals, and what the network saw; nothing before the first is drawn."""
        row, members, (ranks, drawn, told) = torch.arange(len(rank), device=rank.device), state["members"], self._spoke(state)
        log_p, count = state["log_probs"][row, rank], ranks.shape[1]
        if not count:
            return log_p, None
        with torch.inference_mode(False), torch.no_grad():
            sender, receiver = members.gather(1, ranks), members[row, rank][:, None]
            links = self.links()
            links = (links[:, sender] * links[:, receiver]).movedim(0, 2)  # [B, N, C, L]
            links = links * state["give"].gather(2, drawn[:, None].expand(-1, links.shape[3], -1)).mT[:, :, None]
            keep = state["keep"][:, None].expand(-1, count, -1, -1)
            links = functional.pad(links, (0, keep.shape[2] - links.shape[3])).flatten(0, 1)
            paths = products(links.contiguous(), keep.flatten(0, 1).contiguous())[:, :, : log_p.shape[1]].unflatten(0, drawn.shape).mT
            of_sender, of_receiver = (
                Features(*(state[n][row[:, None], ranks] for n in FEATURES)),
                Features(*(state[n][row, rank][:, None] for n in FEATURES)),
            )
            said = self.messages(of_sender, drawn, of_receiver, self.pair[sender, receiver], paths) * told[:, :, None, None]
            total = said[:, 0]
            for one in said.unbind(1)[1:]:  # in this order in every batch
                total = total + one
            return self.read(log_p, said.clamp_max(0).amin(1), said.clamp_min(0).amax(1), total)


def exclusion(log_probs: Float[Tensor, "B L V"], masked: Positions) -> tuple[Float[Tensor, "B L V"], Float[Tensor, "B L V"]]:
    """Of each open position p(v) / (1 - p(v)) and p(w): their product is what w gains there when v is excluded."""
    p = log_probs.float().exp() * masked[:, :, None]
    return p / (1 - p).clamp_min(0.05), p


def joined(*parts: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Side by side in the last dimension; the others broadcast."""
    shape = torch.broadcast_shapes(*(part.shape[:-1] for part in parts))
    return torch.cat([part.expand(*shape, -1) for part in parts], dim=-1)


def multiplied(x: Float[Tensor, "*N A"], weights: Sequence[Float[Tensor, "B _"]], bias: Tensor | None = None) -> Float[Tensor, "*N B"]:
    """X W^T + b, W side by side; outside of training the last two dimensions of x are a product of their own, the same in every batch."""
    weight = weights[0] if len(weights) == 1 else torch.cat(list(weights), dim=1)
    if torch.is_grad_enabled() or x.ndim < 3:
        return functional.linear(x, weight, bias)
    flat = x.reshape(-1, *x.shape[-2:])
    out = products(flat, weight.t().expand(len(flat), -1, -1))
    out = out if bias is None else out.add_(bias)
    return out.view(*x.shape[:-1], -1)


def products(left: Float[Tensor, "N A B"], right: Float[Tensor, "N B C"]) -> Float[Tensor, "N A C"]:
    """Each by each, with the same bits however many there are: a lone product would be computed in another way."""
    several = max(len(left), 2) if len(left) else 0
    return torch.bmm(*(x.expand(several, -1, -1) for x in (left, right)))[: len(left)]


def linear(layer: nn.Linear, x: Float[Tensor, "*N A"]) -> Float[Tensor, "*N B"]:
    """A layer, multiplied so."""
    return multiplied(x, (layer.weight,), layer.bias)
