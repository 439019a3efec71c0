"""Teaching learnt tables what they lose: expected KL(conditional || shifted marginal), from walks inside the sets of rules."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pairmi.info import kl
from pairmi.mi.doubt import Doubt, drawn_before
from pairmi.mi.table import TableHead
from pairmi.training.tables import FitTables, read
from pairmi.types import PairmiError

SHARES = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0)  # of the members, the least doubted first


@dataclass(frozen=True)
class Examples:
    """Members after the first of their sets: what is known of each, and what drawing it from its shifted marginal loses."""

    known: Float[Tensor, "M F"]
    nats: Float[Tensor, " M"]
    held_out: Bool[Tensor, " M"]


def with_doubt(head: TableHead, hidden: int, seed: int = 0) -> TableHead:
    """The same tables with a fresh network for what they lose."""
    torch.manual_seed(seed)
    made = TableHead(replace(head.config, doubt=hidden))
    made.load_state_dict(head.state_dict() | {f"doubt.{name}": x for name, x in Doubt(head.config.pooled, hidden).state_dict().items()})
    return made


def examples(job: FitTables, head: TableHead) -> Examples:
    """Of all sets of the walks of a job, under these tables."""
    if head.doubt is None:
        raise PairmiError("train doubt: these tables have no network for it")
    sets = torch.cat([job.train, job.validation])
    parts, rng = list[tuple[Tensor, Tensor, Tensor]](), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for some in sets[job.size[sets].argsort(stable=True)].split(32):
            batch = job.batch(some, rng)
            log_q, inner = read(head, batch)
            count, asked = batch.drawn.shape[1], batch.following
            open_ = (batch.keep.sum(2) > 0).sum(1, keepdim=True).float()
            heard = drawn_before(batch.log_probs[:, :count], batch.drawn, torch.ones(batch.drawn.shape), open_)
            log_p = batch.log_probs[:, None].expand_as(log_q)[asked]
            known = head.doubt.known(log_p, log_q[asked], inner[asked], heard[:, :, None].expand(*asked.shape, -1)[asked])
            held = job.walks.held_out(some)[:, None, None].expand(asked.shape)[asked]
            parts.append((known, kl(batch.true[asked], log_q[asked]).float(), held))
    return Examples(*(torch.cat(part) for part in zip(*parts, strict=True)))


def fit_doubt(doubt: Doubt, found: Examples, epochs: int = 24, batch: int = 512, rate: float = 2e-3, seed: int = 0) -> None:
    """By the Poisson deviance, whose minimum is the expectation: n - k log n for an expected loss n and a measured one k."""
    mine = torch.nonzero(~found.held_out)[:, 0]
    rng, optimizer = torch.Generator().manual_seed(seed), torch.optim.AdamW(doubt.parameters(), rate, weight_decay=0.02)
    torch.nn.init.constant_(doubt.nats.bias, float(found.nats[mine].mean().clamp_min(1e-6).log()))
    steps = epochs * -(-len(mine) // batch)
    done = 0
    for _ in range(epochs):
        for some in mine[torch.randperm(len(mine), generator=rng)].split(batch):
            optimizer.param_groups[0]["lr"] = rate * min(1.0, (done + 1) / 50, 2 * (steps - done) / steps)
            nats = doubt(found.known[some])
            loss = (nats - found.nats[some] * nats.log()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1


def judged(doubt: Doubt, found: Examples) -> Mapping[str, Any]:
    """On held-out sequences: what the least doubted members lose, the share that they are of all, and how doubt and loss agree."""
    with torch.no_grad():
        expected, nats = doubt(found.known[found.held_out]).double(), found.nats[found.held_out].double()
    order = expected.argsort()
    best = nats.sort().values
    kept = [max(1, round(share * len(order))) for share in SHARES]
    thirds = [
        {"expected": float(expected[some].mean()), "lost": float(nats[some].mean())}
        for some in order.tensor_split([len(order) * 8 // 10, len(order) * 19 // 20])
    ]
    return {
        "members": len(order),
        "shares": SHARES,
        "lost": [float(nats[order[:count]].sum() / nats.sum()) for count in kept],
        "least": [float(best[:count].sum() / nats.sum()) for count in kept],
        "limits": [float(expected[order[count - 1]]) for count in kept],
        "groups": thirds,
    }
