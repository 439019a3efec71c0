"""Learnt tables through the embeddings of symbols: for alphabets and sequences of any size."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pairmi.info import entropy
from pairmi.mi.head import check_prediction, gelu
from pairmi.mi.hops import sigmoid
from pairmi.mi.table import LOWEST, TOGETHER, linear
from pairmi.types import Meter, PairmiError, PerRow, Prediction, State

Pools = tuple[Tensor, Tensor, Tensor]  # the least and the greatest of each channel, and the sum of all that was said


@dataclass(frozen=True)
class EmbeddedConfig:
    """The shape of `EmbeddedTables`."""

    width: int  # of one layer of the backbone
    symbols: int
    embedding: int  # numbers that a symbol is known by
    layers: int = 1  # how many layers of the backbone are reported side by side
    learnt: bool = False  # whether these numbers are learnt with the tables; else they are the backbone's own
    inner: int = 256
    forms: int = 16  # bilinear forms of a pair
    form_rank: int = 16
    reach: int = 24  # distances beyond are alike
    hidden: int = 256  # of the network for a drawn symbol and a position that hears of it
    channels: int = 96  # of its messages
    pooled: int = 256  # of the network that reads the pooled messages
    span: int = 0  # how far on either side it is known what a symbol alone does to its neighbours

    def __post_init__(self) -> None:
        if min(size for name, size in asdict(self).items() if name not in ("learnt", "span")) < 1 or self.span < 0:
            raise PairmiError(f"EmbeddedConfig: sizes must be >= 1, got {self}")


class EmbeddedTables(nn.Module):
    """log q(x_j = w | x_i = v, ...) ~ log p_j(w) + e_w . d_j, normalised: e_w is the embedding of w, d_j pools what was drawn.

    A masked language model's logits are products with its output embeddings, so that every true shift is one, too. A drawn (i, v) is
    heard at j as a small network of (h_i, e_v), of h_j, of bilinear forms of both and of the distance; near by it also lends what v does to
    its neighbours where nothing else is known (`alone`: asked of the model once for each symbol), as far as gates of the pair let it.
    Over the drawn members what is lent adds up, and each channel is pooled by its most negative, its most positive and its sum; a network
    of these and h_j gives d_j. It begins as half of what is lent. A drawn symbol costs one message to each other member, a member
    one product with the embeddings.
    """

    embeddings: Tensor
    alone: Tensor
    kind: ClassVar[str] = "embedded"
    matrices: ClassVar[tuple[str, ...]] = (
        *("inner.weight", "send.weight", "sent.weight", "heard.weight", "sender.weight", "receiver.weight"),
        *("second.weight", "combine.weight", "own.weight", "weigh.weight"),
    )

    def __init__(self, config: EmbeddedConfig, embeddings: Float[Tensor, "V E"] | None = None) -> None:
        super().__init__()
        self.config = config
        inner, hidden, pooled, formed = config.inner, config.hidden, config.pooled, config.forms * config.form_rank
        if config.learnt == (embeddings is not None):
            raise PairmiError("EmbeddedTables: expected embeddings of the backbone's, or learnt=True; got both or neither")
        if embeddings is None:
            self.embeddings = nn.Parameter(torch.randn(config.symbols, config.embedding))
        elif tuple(embeddings.shape) != (config.symbols, config.embedding):
            expected = f"{config.symbols} embeddings of {config.embedding} numbers"
            raise PairmiError(
                f"EmbeddedTables: expected {expected}, got {tuple(embeddings.shape)}; load the tables with their own backbone"
            )
        else:
            self.register_buffer("embeddings", embeddings.detach().float() / embeddings.float().square().mean().sqrt(), persistent=False)
        if config.span:
            alone = torch.zeros(config.symbols, 2 * config.span + 1, config.embedding, dtype=torch.float16)
            self.register_buffer("alone", alone)  # at -span, ..., span; nothing at 0
        self.inner = nn.Linear(config.layers * config.width + 2, inner)
        self.send = nn.Linear(inner + config.embedding + 1, inner)
        self.sent, self.heard = nn.Linear(inner, formed, bias=False), nn.Linear(inner, formed, bias=False)
        self.sender, self.receiver = nn.Linear(inner, hidden, bias=False), nn.Linear(inner, hidden, bias=False)
        self.place = nn.Parameter(0.5 * torch.randn(2 * config.reach + 1, hidden))
        self.gate = nn.Parameter(torch.ones(2 * config.reach + 1, hidden))
        self.form = nn.Linear(config.forms, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.message = nn.Linear(hidden, config.channels)
        self.lend = nn.Linear(hidden, config.embedding)
        heard = 3 * config.channels + config.embedding
        self.combine = nn.Linear(heard, pooled)
        self.own = nn.Linear(inner, pooled, bias=False)
        self.weigh = nn.Linear(pooled, pooled)
        self.shift, self.trust = nn.Linear(pooled + heard, config.embedding, bias=False), nn.Linear(pooled, config.embedding)
        for begins in (self.shift.weight, self.lend.weight, self.lend.bias, self.trust.weight, self.trust.bias):
            nn.init.zeros_(begins)
        nn.init.normal_(self.message.weight, std=0.3 * hidden**-0.5)

    def about(self) -> dict[str, Any]:
        """Its shape, for the file that it is kept in."""
        return asdict(self.config)

    def features(self, hidden: Float[Tensor, "*N D"], certainty: Float[Tensor, "*N 2"]) -> Float[Tensor, "*N I"]:
        """What is known of positions, by themselves."""
        config = self.config
        normed = functional.layer_norm(hidden.float().unflatten(-1, (config.layers, config.width)), (config.width,)).flatten(-2)
        return gelu(linear(self.inner, torch.cat([normed, certainty], dim=-1)))

    def spoken(self, inner: Float[Tensor, "*N I"], symbol: Int[Tensor, "*N"], log_p: Float[Tensor, "*N"]) -> Float[Tensor, "*N I"]:
        """What is known of positions that took these symbols, of such log-probabilities."""
        drawn = functional.layer_norm(self.embeddings[symbol], (self.config.embedding,))
        surprise = log_p.float().clamp_min(LOWEST)[..., None] / 4
        return gelu(linear(self.send, torch.cat([inner, drawn, surprise], dim=-1)))

    def messages(
        self, spoken: Float[Tensor, "... I"], symbol: Int[Tensor, "..."], inner: Float[Tensor, "... I"], distance: Int[Tensor, "..."]
    ) -> Float[Tensor, "... K"]:
        """Of those that took symbols to those that hear of it, so many positions further on; the leading dimensions of all broadcast.

        The channels, then what is lent."""
        forms = (linear(self.sent, spoken) * linear(self.heard, inner)).unflatten(-1, (self.config.forms, -1)).sum(-1)
        where = distance.clamp(-self.config.reach, self.config.reach) + self.config.reach
        base = linear(self.form, forms / (2 + forms.abs())) + self.place[where]
        first = ((linear(self.sender, spoken) + linear(self.receiver, inner)) * self.gate[where] + base).relu()
        second = first + linear(self.second, first).relu()
        return torch.cat([linear(self.message, second), self._lent(second, symbol, distance)], dim=-1)

    def _lent(self, known: Float[Tensor, "... H"], symbol: Int[Tensor, "..."], distance: Int[Tensor, "..."]) -> Float[Tensor, "... E"]:
        span = self.config.span
        if not span:
            return known.new_zeros(*known.shape[:-1], self.config.embedding)
        near = (distance.abs() <= span)[..., None]
        return self.alone[symbol, distance.clamp(-span, span) + span].float() * near * sigmoid(linear(self.lend, known))

    def pools(self, said: Float[Tensor, "B N ... K"]) -> Pools:
        """What is remembered of messages, after each of the first, the second, ... sender."""
        channels = said[..., : self.config.channels]
        return channels.clamp_max(0).cummin(1).values, channels.clamp_min(0).cummax(1).values, said.cumsum(1)

    def moved(self, inner: Float[Tensor, "*N I"], pools: Pools) -> Float[Tensor, "*N E"]:
        """The vector that all symbols are moved by."""
        low, high, total = pools
        channels, lent = total[..., : self.config.channels], total[..., self.config.channels :]
        heard = torch.cat([low, high, channels / (1 + channels.abs() / 4), lent], dim=-1)
        read = linear(self.weigh, (linear(self.combine, heard) + linear(self.own, inner)).relu()).relu()
        return linear(self.shift, torch.cat([read, heard], dim=-1)) + 2 * sigmoid(linear(self.trust, read)) * lent

    def begin(self, prediction: Prediction, members: Int[Tensor, "B M"], backbone: Meter) -> State:
        """The features of the members, in groups of `TOGETHER`; they have heard nothing."""
        config = self.config
        check_prediction(self, prediction, config.layers * config.width, config.symbols, 0)
        row, count = torch.arange(len(members), device=members.device)[:, None], members.shape[1]
        where = functional.pad(members, (0, -count % TOGETHER)).unflatten(1, (-1, TOGETHER))
        with torch.inference_mode(False), torch.no_grad():
            inner = self.features(prediction.hidden[row[:, :, None], where], certainty(prediction.log_probs[row[:, :, None], where]))
            nothing = inner.new_zeros(*where.shape, config.channels)
        heard = {"low": nothing, "high": nothing, "total": functional.pad(nothing, (0, config.embedding))}
        places = members if prediction.places is None else prediction.places.gather(1, members)  # distances are those of the canvas
        where = functional.pad(places, (0, -count % TOGETHER)).view_as(where)
        return {"members": where, "inner": inner, "log_probs": prediction.log_probs[row, members].float()} | heard

    def after(self, state: State, rank: PerRow, symbol: PerRow, backbone: Meter) -> State:
        """All members hear of it, group by group: no bit of a row depends on its batch mates."""
        row = torch.arange(len(rank), device=rank.device)
        with torch.inference_mode(False), torch.no_grad():
            inner, members = state["inner"], state["members"]
            mine, place = inner.flatten(1, 2)[row, rank], members.flatten(1)[row, rank]
            spoken = self.spoken(mine[:, None], symbol[:, None], state["log_probs"][row, rank, symbol][:, None])
            said = self.messages(spoken[:, None], symbol[:, None, None], inner, members - place[:, None, None])
            channels = said[..., : self.config.channels]
            low, high = torch.minimum(state["low"], channels), torch.maximum(state["high"], channels)
        return dict(state) | {"low": low, "high": high, "total": state["total"] + said}

    def shifted(self, state: State, rank: PerRow) -> Float[Tensor, "B V"]:
        """One product with the embeddings a row."""
        row, log_p = torch.arange(len(rank), device=rank.device), state["log_probs"]
        with torch.inference_mode(False), torch.no_grad():
            inner, low, high, total = (state[name].flatten(1, 2)[row, rank][:, None] for name in ("inner", "low", "high", "total"))
            moved = self.moved(inner, (low, high, total))
            shift = torch.bmm(moved, self.embeddings.t().expand(len(moved), -1, -1))[:, 0]
            return functional.log_softmax(log_p[row, rank] + shift, dim=-1)


def certainty(log_probs: Float[Tensor, "*N V"]) -> Float[Tensor, "*N 2"]:
    """The entropy of distributions, and their greatest probability."""
    return torch.stack([entropy(log_probs).float() / 4, log_probs.amax(-1).float().exp()], dim=-1)
