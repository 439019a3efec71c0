"""Fitting a table head: the true conditionals inside a rule's sets, against marginals that the members before have shifted."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pairmi.backbones.checkpoint import fingerprint, load_tensors
from pairmi.backbones.transformer import Transformer
from pairmi.info import kl
from pairmi.mi.head import LowRankHead
from pairmi.mi.heads import among_layers, reporting
from pairmi.mi.table import Features, TableConfig, TableHead, exclusion
from pairmi.model import Model
from pairmi.training.optimizer import MuonAdamW, Rates
from pairmi.training.processes import Processes
from pairmi.training.table_labels import Walks
from pairmi.types import PairmiError


@dataclass(frozen=True)
class TableTraining:
    """How a table head is trained."""

    seed: int = 0
    pairs: int = 3000  # drawn members times those that hear them, a step
    others: int = 12  # open positions outside the set that are asked for, too
    least: float = 0.3  # the weight of a position that is not the next member, whose own is 1
    rates: Rates = field(default_factory=lambda: Rates(muon=0.015, adam=3e-3, weight_decay=0.1))


@dataclass(frozen=True)
class Batch:
    """Some sets of about one size: members by rank (at most M), then positions outside the set, all of which hear the first M - 1."""

    hidden: Float[Tensor, "S R D"]
    log_probs: Float[Tensor, "S R V"]
    where: Int[Tensor, "S R"]
    drawn: Int[Tensor, "S N"]
    give: Float[Tensor, "S L V"]
    keep: Float[Tensor, "S L V"]
    true: Float[Tensor, "S N R V"]  # log-probabilities after 1, ..., N members
    weight: Float[Tensor, "S N R"]  # 1 = the next member, 0 = not to be learnt
    following: Bool[Tensor, "S N R"]  # whether it is the next member


def predicted(head: TableHead, batch: Batch) -> Float[Tensor, "S N R V"]:
    """What the head says of every position after 1, ..., N members, by running pools."""
    return read(head, batch)[0]


def read(head: TableHead, batch: Batch) -> tuple[Float[Tensor, "S N R V"], Float[Tensor, "S N R V I"]]:
    """The same, and what its last network saw."""
    known, count = head.features(batch.hidden, batch.log_probs, batch.where), batch.drawn.shape[1]
    sender = Features(*(x[:, :count].unsqueeze(2) for x in (known.symbol, known.form)))
    receiver = Features(*(x.unsqueeze(1) for x in (known.symbol, known.form)))
    links, source = head.links(), batch.where[:, :count]
    given = batch.give.gather(2, batch.drawn[:, None].expand(-1, links.shape[1], -1)).mT  # [S, N, L]
    out = links[:, source] * given  # [P, S, N, L]
    heard = links[:, batch.where]  # [P, S, R, L]
    paths = torch.einsum("psnk,psrk,skw->snrwp", out, heard, batch.keep)
    places = head.pair[source[:, :, None], batch.where[:, None]]
    said = head.messages(sender, batch.drawn[:, :, None], receiver, places, paths)
    low, high = said.clamp_max(0).cummin(1).values, said.clamp_min(0).cummax(1).values
    return head.read(batch.log_probs[:, None], low, high, said.cumsum(1))


class FitTables:
    """The training job of a table head; the backbone sees every set once, at the start."""

    def __init__(
        self,
        model: Model,
        head: TableHead,
        layers: Sequence[int],
        walks: Walks,
        config: TableTraining,
        about: Mapping[str, Any],
        start: str = "",
    ) -> None:
        self.start = start  # the fingerprint of the weights that it begins with, if they are not drawn
        self.head, self.config, self.layers, self.labels, self.walks = head, config, list(layers), dict(about), walks
        self.size = (walks.order >= 0).sum(1)
        self.first = torch.full((len(self.size), int(self.size.max())), -1)  # the row of each set and rank
        self.first[walks.of.long(), walks.rank.long()] = torch.arange(len(walks.of))
        useful = torch.nonzero(self.size > 1)[:, 0]
        held = walks.held_out(useful)
        self.train, self.validation = useful[~held], useful[held]
        if not len(self.train) or not len(self.validation):
            raise PairmiError(f"train tables: {len(useful)} sets of two or more leave nothing to train or to validate on; make more")
        self.mask, self.length = model.vocab.size, walks.tokens.shape[1]
        backbone, hidden = reporting(model.backbone, layers), list[Tensor]()
        with torch.no_grad():
            for some in walks.tokens.long().split(256):
                hidden.append(backbone(some).hidden.half())
        self.hidden = torch.cat(hidden)
        self.optimizer = MuonAdamW(dict(head.named_parameters()), dict.fromkeys(head.matrices, 1), config.rates)

    def batch(self, sets: Int[Tensor, " S"], rng: torch.Generator) -> Batch:
        """What is to be learnt from some sets."""
        order, tokens, walks = self.walks.order[sets].long(), self.walks.tokens[sets].long(), self.walks
        most, masked = int(self.size[sets].max()), tokens == self.mask
        chance = torch.rand(order.shape, generator=rng).masked_fill(~masked, 2.0)
        rank = torch.where(order >= 0, order - 1000.0, chance)  # members first, by rank, then open positions by chance
        count = min(most + self.config.others, order.shape[1])
        where = rank.argsort(dim=1)[:, :count]
        size, row = self.size[sets][:, None], torch.arange(len(sets))[:, None]
        base = walks.log_probs[self.first[sets, 0]].float()
        members = where[:, : most - 1]
        drawn = walks.filled[sets].long()[row, members].clamp(0, self.mask - 1)
        drawn = torch.where(torch.arange(most - 1) < size, drawn, 0)
        after = torch.arange(1, most)[None, :, None]  # how many are drawn
        place, rows = torch.arange(count)[None, None], self.first[sets, 1:most]
        true = walks.log_probs[rows.clamp_min(0)[:, :, None], where[:, None]].float()
        member = place < size[:, :, None]
        open_, there = masked[row, where][:, None], (rows >= 0)[:, :, None]
        valid = there & open_ & torch.where(member, place >= after, True)
        following = there & (place == after) & member
        weight = torch.where(following, 1.0, self.config.least) * valid
        give, keep = exclusion(base, masked)
        return Batch(self.hidden[sets][row, where], base[row, where], where, drawn, give, keep, true, weight, following)

    def about(self) -> dict[str, Any]:
        """Everything that the result depends on but the number of steps."""
        shape = {"head": self.head.kind, "config": self.head.about(), "layers": self.layers}
        made = {"backbone": self.labels["backbone"], "labels": self.labels, "sets": len(self.train)}
        return shape | made | {"training": asdict(self.config), "start": self.start}

    def tensors(self) -> dict[str, Tensor]:
        """The weights and the optimiser's state."""
        weights = {f"model.{name}": tensor.data for name, tensor in self.head.named_parameters()}
        return weights | {f"optimizer.{name}": tensor for name, tensor in self.optimizer.state.items()}

    def advance(self, step: int, rate: float) -> float:
        """One batch of sets of about one size; its loss."""
        rng = torch.Generator().manual_seed(self.config.seed * 7_368_787 + step)
        size = self.size[self.train]
        chosen = int(size[torch.multinomial((size - 1).double(), 1, generator=rng)])
        alike = self.train[(size >= chosen) & (size <= chosen + chosen // 6)]
        count = max(1, self.config.pairs // ((chosen - 1) * (chosen + self.config.others)))
        batch = self.batch(alike[torch.randint(len(alike), (count,), generator=rng)], rng)
        error = (divergence(batch.true, predicted(self.head, batch)) * batch.weight).sum()
        error.backward()
        return self.optimizer.shared_step(step, rate, torch.stack([error.detach(), batch.weight.sum()]), Processes())

    def evaluate(self) -> dict[str, float]:
        """On held-out sequences: the share of KL(conditional || marginal) of the next members that the shift explains, and what is left."""
        before, left = torch.zeros(2)
        rng, ranked = torch.Generator().manual_seed(0), self.validation[self.size[self.validation].argsort(stable=True)]
        with torch.no_grad():
            for sets in ranked.split(32):
                batch = self.batch(sets, rng)
                base = batch.log_probs[:, None].expand_as(batch.true)
                before += kl(batch.true, base)[batch.following].sum()
                left += kl(batch.true, predicted(self.head, batch))[batch.following].sum()
        return {
            "explained": 1 - float(left / before),
            "nats": float(left / len(self.validation)),
            "marginals": float(before / len(self.validation)),
        }


def divergence(true: Float[Tensor, "*N V"], log_q: Float[Tensor, "*N V"]) -> Float[Tensor, "*N"]:
    """KL(true || q), with gradients."""
    p = true.exp()
    return (p * (true.clamp_min(-30) - log_q)).sum(-1)


def make_tables(
    model: Model, layers: Sequence[int] | None, walks: Walks, about: Mapping[str, Any], config: TableTraining, start: str | None = None
) -> FitTables:
    """The training of tables that read these layers, or those of the model's head: from a file, or fresh; then what they know of a position
    and of where two positions are begins as in the head, where that reads the same layers."""
    backbone = model.backbone
    if not isinstance(backbone, Transformer):
        raise PairmiError(f"train tables: {model.name} is no transformer of one length; take exact tables, draw=probed")
    layers = list(layers or backbone.layers)
    torch.manual_seed(config.seed)  # initialisation only; every later draw has its own generator
    head = TableHead(TableConfig(backbone.width, model.vocab.size, backbone.length, len(layers)))
    if not start:
        other = model.head if layers == list(backbone.layers) else None
        return FitTables(model, head, layers, walks, config, about, started(head, other) if isinstance(other, LowRankHead) else "")
    tensors, described = load_tensors(Path(start))
    known = {name: tensor.float() for name, tensor in tensors.items() if not name.startswith("doubt.")}  # which is learnt afterwards
    read, shape = described.get("layers") or [], described.get("config", {}) | {"doubt": 0}
    if read and {*read} < {*layers}:
        known["inner.weight"] = among_layers(known["inner.weight"], read, layers, backbone.width)
        shape |= {"layers": len(layers)}
    if shape != head.about():
        raise PairmiError(f"train tables: {start} holds no tables of this shape; expected {head.about()}")
    head.load_state_dict(known)
    return FitTables(model, head, layers, walks, config, about, fingerprint(tensors))


def started(tables: TableHead, head: LowRankHead) -> str:
    """Let fresh tables begin with what an MI head knows of a position and of where two positions are; its fingerprint, or nothing."""
    mine, theirs = dict(tables.named_parameters()), dict(head.named_parameters())
    shared = [name for name in ("inner.weight", "inner.bias", "position", "project.weight", "project.bias", "signs") if name in theirs]
    if head.pair is None or head.pair.ndim != 3 or any(mine[name].shape != theirs[name].shape for name in shared):
        return ""
    places = head.pair.permute(1, 2, 0)[:, :, : tables.config.places]
    with torch.no_grad():
        for name in shared:
            mine[name].copy_(theirs[name])
        tables.pair[:, :, : places.shape[2]] = (places - places.mean((0, 1))) / places.std((0, 1))
    return fingerprint(head.state_dict())
