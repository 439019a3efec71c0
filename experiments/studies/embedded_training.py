"""Fitting tables that read embeddings: the true conditionals inside the sets of masked sequences, abridged where the alphabet is large."""

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from tqdm import tqdm

from pairmi.backbones.checkpoint import ensure_writable, load_tensors, save_tensors
from pairmi.backbones.identity import identify
from pairmi.counting import Counting
from pairmi.draw import Streams, draw
from pairmi.mi.embedded_tables import EmbeddedConfig, EmbeddedTables, certainty
from pairmi.mi.heads import Embedded, Layered, reporting
from pairmi.model import Model, predict_at
from pairmi.spec import rule
from pairmi.training.optimizer import MuonAdamW, Rates
from pairmi.training.processes import Processes
from pairmi.training.states import grid_name, short_hash
from pairmi.types import PairmiError, Selector, Tokens, Turn

RULES = ("top-k:k=8", "top-k:k=4", "top-k:k=8,by=random", "top-k:k=16")  # whose sets are filled, in turn
HELD_OUT = 8  # of so many sequences one is for validation
KEPT, OTHERS = 256, 48  # symbols of a large alphabet that are kept of a conditional, and drawn of all others
ASKED = 6000  # symbols at most that are asked what they do alone
SPANS = 2  # positions that every second lot masks together, as words are
FLOOR = -80.0  # log-probabilities below are alike


@dataclass(frozen=True)
class EmbeddedTraining:
    """How tables that read embeddings are trained."""

    seed: int = 0
    batch: int = 12  # sequences of a lot
    lots: int = 300
    judged: int = 12  # lots of held-out sequences
    turns: int = 2  # sets of each sequence that are filled
    lengths: tuple[int, int] = (16, 32)  # of the pieces that longer sequences are cut into
    masked: tuple[float, float] = (0.3, 0.9)  # how much of a piece is unknown
    each: int = 2  # lots a step
    rates: Rates = field(default_factory=lambda: Rates(muon=0.008, adam=2e-3, weight_decay=0.05))


@dataclass(frozen=True)
class Filled:
    """Sets of one size M that were filled one by one, and what the model said of the members left after 1, ..., M - 1: Q in all.

    Of a large alphabet that is kept of the likeliest symbols before and after, of some others by chance, and of all others together.
    """

    hidden: Float[Tensor, "S M D"]
    certainty: Float[Tensor, "S M 2"]
    own: Float[Tensor, "S M"]  # log-probabilities of the drawn symbols before any was
    members: Int[Tensor, "S M"]
    drawn: Int[Tensor, "S M"]
    symbols: Int[Tensor, "S Q C"]
    before: Float[Tensor, "S Q C+1"]  # their log-probabilities, the last that of all others together
    after: Float[Tensor, "S Q C+1"]
    others: Int[Tensor, "S Q O"]  # some of these

    def part(self, some: Int[Tensor, " K"]) -> "Filled":
        """Some of the sets."""
        return Filled(**{one.name: getattr(self, one.name)[some] for one in fields(Filled)})


def fill_sets(model: Model, tokens: Tokens, selector: Selector, streams: Streams) -> tuple[Filled, Tokens]:
    """Fill the sets of a rule that chooses equally many in all rows, each member drawn from its conditional; and the canvases then."""
    meter, mask, every = Counting(model), model.vocab.size, torch.arange(len(tokens))
    prediction = meter(tokens)
    chosen = selector(Turn(prediction, meter, streams, {}))
    members = chosen.members[:, : int(chosen.chosen.sum(1).min())]
    hidden, said = (x[every[:, None], members] for x in (prediction.hidden, prediction.log_probs))
    parts, drawn, left = list[tuple[Tensor, ...]](), list[Tensor](), said
    for rank in range(members.shape[1]):
        if rank:
            left = predict_at(model, tokens, members[:, rank:]).log_probs
            parts.append(abridged(said[:, rank:], left, torch.Generator().manual_seed(int(streams.index[0]) * 100 + rank)))
        drawn.append(draw(left[:, 0], streams, every, members[:, rank] * mask, "draw"))
        tokens = tokens.scatter(1, members[:, [rank]], drawn[-1][:, None])
    symbols = torch.stack(drawn, dim=1)
    own = said.gather(2, symbols[:, :, None])[:, :, 0]
    found = (torch.cat(part, dim=1) for part in zip(*parts, strict=True))
    return Filled(hidden.half(), certainty(said), own, members, symbols, *found), tokens


def abridged(
    before: Float[Tensor, "S K V"], after: Float[Tensor, "S K V"], rng: torch.Generator
) -> tuple[Int[Tensor, "S K C"], Float[Tensor, "S K C+1"], Float[Tensor, "S K C+1"], Int[Tensor, "S K O"]]:
    """Of two distributions the likeliest symbols with their log-probabilities, that of all others together, and some of these."""
    size = before.shape[2]
    if size <= KEPT:
        symbols, none = torch.arange(size).expand(before.shape), torch.full_like(before[:, :, :1], FLOOR)
        return symbols.int(), torch.cat([before, none], dim=2), torch.cat([after, none], dim=2), symbols[:, :, :1].int()
    symbols = torch.maximum(before - 2, after).topk(KEPT, dim=2).indices  # what it becomes matters more than what it was
    rest = before.scatter(2, symbols, -torch.inf).exp().flatten(0, 1)
    others = torch.multinomial(rest, OTHERS, replacement=True, generator=rng).view(*before.shape[:2], OTHERS)
    kept = [x.gather(2, symbols) for x in (before, after)]
    left = [(1 - x.exp().sum(2, keepdim=True)).clamp_min(1e-6).log() for x in kept]
    was, became = (torch.cat(pair, dim=2) for pair in zip(kept, left, strict=True))
    return symbols.int(), was, became, others.int()


def asked_alone(backbone: Embedded, span: int) -> Float[Tensor, "V W E"]:
    """How the vectors at so many positions on either side change when one symbol of an unknown canvas becomes known.

    Of a large alphabet the likeliest symbols there are asked; nothing is known of the others.
    """
    size, middle = backbone.vocab.size, torch.tensor([span + 1])
    empty, around = torch.full((1, 2 * span + 3), size), torch.arange(1, 2 * span + 2)
    with torch.no_grad():
        before, likely = backbone.vectors(empty, around[None]), backbone(empty).log_probs[0].amax(0)
        found = torch.zeros(size, *before.shape[1:], dtype=torch.float16)
        for some in tqdm(likely.topk(min(size, ASKED)).indices.split(128), desc="symbols", file=sys.stderr):
            tokens = empty.repeat(len(some), 1).index_copy(1, middle, some[:, None])
            found[some] = (backbone.vectors(tokens, around.expand(len(some), -1)) - before).half()
    return found.index_fill(1, middle - 1, 0)


def moved(head: EmbeddedTables, sets: Filled) -> Float[Tensor, "S Q E"]:
    """The vectors that members are moved by after 1, ..., M - 1 others were drawn: by running pools."""
    count = sets.members.shape[1] - 1
    inner = head.features(sets.hidden, sets.certainty)
    spoken = head.spoken(inner[:, :count], sets.drawn[:, :count], sets.own[:, :count])
    distance = sets.members[:, None] - sets.members[:, :count, None]
    said = head.messages(spoken[:, :, None], sets.drawn[:, :count, None].expand_as(distance), inner[:, None], distance)
    low, high, total = (torch.cat([x[:, n, n + 1 :] for n in range(count)], dim=1) for x in head.pools(said))
    return head.moved(torch.cat([inner[:, n + 1 :] for n in range(count)], dim=1), (low, high, total))


def divergence(head: EmbeddedTables, sets: Filled, moved: Float[Tensor, "S Q E"]) -> Float[Tensor, "S Q"]:
    """KL(conditional || shifted marginal) of what is kept; what all others together become is estimated by some of them."""
    by = moved.flatten(0, 1)[:, :, None]
    shift, other = (torch.bmm(head.embeddings[which.flatten(0, 1)], by)[:, :, 0] for which in (sets.symbols, sets.others))
    together = other.logsumexp(1, keepdim=True) - math.log(other.shape[1])
    log_q = torch.log_softmax(sets.before.flatten(0, 1) + torch.cat([shift, together], dim=1), dim=1)
    after = sets.after.flatten(0, 1).clamp_min(FLOOR)
    return (after.exp() * (after - log_q)).sum(1).view(sets.symbols.shape[:2])


class FitEmbedded:
    """The training job; its labels are made once, lot by lot, each a function of its number."""

    def __init__(
        self, model: Model, head: EmbeddedTables, layers: Sequence[int], sequences: Sequence[Tensor], config: EmbeddedTraining
    ) -> None:
        self.model = Model(reporting(model.backbone, layers), model.name)
        self.head, self.layers, self.config, self.backbone = head, list(layers), config, identify(model)
        self.train = [one for n, one in enumerate(sequences) if n % HELD_OUT]
        self.validation = [one for n, one in enumerate(sequences) if not n % HELD_OUT]
        self.rules = [rule(spec, self.model) for spec in RULES]
        self.fingerprint = short_hash(" ".join(grid_name(one) for one in sequences).encode())
        self.lots, self.judged = list[Filled](), list[Filled]()
        self.optimizer = MuonAdamW(dict(head.named_parameters()), dict.fromkeys(head.matrices, 1), config.rates)

    def canvases(self, sequences: Sequence[Tensor], number: int) -> Tokens:
        """Masked pieces of sequences, all of one length: single positions are unknown, or runs of them."""
        rng, count = torch.Generator().manual_seed(self.config.seed * 7_368_787 + number), self.config.batch
        length = int(torch.randint(self.config.lengths[0], self.config.lengths[1] + 1, (), generator=rng))
        length = min(length, max(len(one) for one in sequences))
        pool = [one for one in sequences if len(one) >= length]
        chosen = [pool[int(n)] for n in torch.randint(len(pool), (count,), generator=rng)]
        starts = [int(torch.randint(len(one) - length + 1, (), generator=rng)) for one in chosen]
        tokens = torch.stack([one[start : start + length] for one, start in zip(chosen, starts, strict=True)])
        share = float(torch.empty(()).uniform_(*self.config.masked, generator=rng))
        run = SPANS if number % 2 else 1
        chance = torch.rand(count, -(-length // run), generator=rng).repeat_interleave(run, dim=1)[:, :length]
        unknown = chance.argsort(dim=1, stable=True).argsort(dim=1) < max(2, round(share * length))
        return tokens.masked_fill(unknown, self.model.vocab.size)

    def sets(self, sequences: Sequence[Tensor], number: int) -> list[Filled]:
        """Some sets of masked pieces, one after the other."""
        count, tokens, found = self.config.batch, self.canvases(sequences, number), list[Filled]()
        for turn in range(self.config.turns):
            if int((tokens == self.model.vocab.size).sum(1).min()) < 2:
                break
            streams = Streams(self.config.seed, number * count + torch.arange(count), turn)
            with torch.no_grad():
                made, tokens = fill_sets(self.model, tokens, self.rules[number // 2 % len(self.rules)], streams)
            found.append(made)
        return found

    def read_alone(self, folder: Path) -> None:
        """What each symbol does to its neighbours where nothing else is known, from a file in `folder`; if it is missing, it is asked."""
        file, span, backbone = folder / "alone.safetensors", self.head.config.span, self.model.backbone
        if not file.is_file() and isinstance(backbone, Embedded):
            ensure_writable(folder, "train tables: --labels")
            save_tensors(file, {"alone": asked_alone(backbone, span)}, {"backbone": self.backbone, "span": span})
        tensors, about = load_tensors(file)
        if about != {"backbone": self.backbone, "span": span}:
            raise PairmiError(f"train tables: {file} was made in another way; choose another folder or remove it")
        own = backbone.embeddings if isinstance(backbone, Embedded) else None
        self.head.alone.copy_(tensors["alone"].float() * (1.0 if own is None else own.float().square().mean().sqrt()))

    def read_labels(self, folder: Path) -> None:
        """The sets that are learnt from, and those that it is judged on, from the files in `folder`; those that are missing are made."""
        ensure_writable(folder, "train tables: --labels")
        if self.head.config.span:
            self.read_alone(folder)
        about = json.loads(json.dumps(self.labelled()))
        for number in tqdm(range(-self.config.judged, self.config.lots), desc="labels", unit="lot", file=sys.stderr):
            file = folder / f"lot-{number:04d}.safetensors"
            if not file.is_file():
                made = self.sets(self.train if number >= 0 else self.validation, abs(number))
                tensors = {f"{n}.{f.name}": getattr(one, f.name).contiguous() for n, one in enumerate(made) for f in fields(Filled)}
                save_tensors(file, tensors, about)
            tensors, described = load_tensors(file)
            if described != about:
                raise PairmiError(f"train tables: {file} was made in another way; choose another folder or remove it")
            for n in sorted({name.partition(".")[0] for name in tensors}):
                one = Filled(**{f.name: tensors[f"{n}.{f.name}"] for f in fields(Filled)})
                (self.lots if number >= 0 else self.judged).append(one)

    def advance(self, step: int, rate: float) -> float:
        """Some lots of sets; its loss, in nats a member."""
        rng, tally = torch.Generator().manual_seed(self.config.seed * 7_368_787 + step), torch.zeros(2)
        for n in torch.randint(len(self.lots), (self.config.each,), generator=rng).tolist():
            sets = self.lots[n]
            sets = sets.part(torch.randperm(len(sets.members), generator=rng)[: max(1, 400 // sets.symbols.shape[1])])
            nats = divergence(self.head, sets, moved(self.head, sets))
            nats.sum().backward()
            tally += torch.stack([nats.detach().sum(), torch.tensor(float(nats.numel()))])
        return self.optimizer.shared_step(step, rate, tally, Processes())

    def evaluate(self) -> dict[str, float]:
        """On held-out sequences: the share of KL(conditional || marginal) of the members that were left which the shift explains."""
        with torch.no_grad():
            left = [divergence(self.head, one, moved(self.head, one)).flatten() for one in self.judged]
            before = [
                divergence(self.head, one, torch.zeros(*one.symbols.shape[:2], self.head.config.embedding)).flatten() for one in self.judged
            ]
        marginals, nats = (float(torch.cat(x).mean()) for x in (before, left))
        return {"explained": 1 - nats / marginals, "nats": nats, "marginals": marginals}

    def labelled(self) -> dict[str, Any]:
        """What labels depend on but their number."""
        names = ("seed", "batch", "turns", "lengths", "masked")
        made = {"backbone": self.backbone, "layers": self.layers, "fingerprint": self.fingerprint, "rules": RULES, "kept": [KEPT, OTHERS]}
        return made | {name: getattr(self.config, name) for name in names}

    def about(self) -> dict[str, Any]:
        """Everything that the result depends on but the number of steps."""
        shape = {"head": self.head.kind, "config": self.head.about(), "sequences": len(self.train) + len(self.validation)}
        return shape | self.labelled() | {"training": asdict(self.config)}

    def tensors(self) -> dict[str, Tensor]:
        """The weights and the optimiser's state."""
        weights = {f"model.{name}": tensor.data for name, tensor in self.head.state_dict().items()}
        return weights | {f"optimizer.{name}": tensor for name, tensor in self.optimizer.state.items()}


def make_embedded(
    model: Model, layers: Sequence[int] | None, sequences: Sequence[Tensor], config: EmbeddedTraining, span: int = 3
) -> FitEmbedded:
    """The training of fresh tables for any alphabet and length: they read these layers, those of its head, or middle and last."""
    backbone = model.backbone
    if not isinstance(backbone, Layered):
        raise PairmiError(f"train tables: {model.name} offers no choice of layers; take exact tables, draw=probed")
    layers = list(layers or (backbone.layers if model.head is not None else (max(1, backbone.depth // 2), backbone.depth)))
    torch.manual_seed(config.seed)  # initialisation only; every later draw has its own generator
    with torch.no_grad():
        width = reporting(backbone, layers)(torch.full((1, model.length or 4), model.vocab.size)).hidden.shape[2] // len(layers)
    known = backbone.embeddings if isinstance(backbone, Embedded) else None
    size, span = (32, 0) if known is None else (known.shape[1], span)
    shape = EmbeddedConfig(width, model.vocab.size, size, len(layers), known is None, span=span)
    return FitEmbedded(model, EmbeddedTables(shape, known), layers, sequences, config)
