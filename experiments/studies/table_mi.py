"""Mutual information by formula from learnt tables: what each symbol of a position would do to every other."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pairmi.info import entropy_of, pair_matrix
from pairmi.mi.head import check_prediction
from pairmi.mi.table import Features, TableHead, exclusion
from pairmi.types import Meter, PairMatrix, Prediction, RowStreams

PAIRS = 2048  # drawn symbols times positions that hear them, at once: their features stay in the cache of a core


@dataclass(frozen=True)
class TableMI:
    """I_ij = sum_v p_i(v) KL(q_{j|i=v} || m_j), m_j = sum_v p_i(v) q_{j|i=v}, at most min(H_i, H_j), both ways averaged.

    That is the `joint` form of the probe, with the tables in the place of its rows. One pass of the backbone, none for the estimate; but
    every symbol of every position speaks to every other position: O(N^2 V^2) small products, where drawing a set takes those of its
    own symbols. Each row of a batch is computed by itself.
    """

    tables: TableHead
    least: float = 0.002  # symbols below this probability are left out: each can change an entry by 0.012 nats at the most

    def __call__(self, prediction: Prediction, backbone: Meter, rng: RowStreams) -> PairMatrix:
        """The matrix of each row."""
        config = self.tables.config
        check_prediction(self.tables, prediction, config.layers * config.width, config.symbols, config.length)
        entropies, length = entropy_of(prediction), config.length
        with torch.inference_mode(False):
            found = torch.zeros(len(prediction.tokens), length, length, dtype=torch.float64, device=entropies.device)
            for row in range(len(found)):
                where = torch.nonzero(prediction.queried[row])[:, 0]
                if len(where) > 1:
                    found[row, where[:, None], where] = self._directed(prediction, row, where)
        capped = torch.minimum(found, torch.minimum(entropies[:, :, None], entropies[:, None]))
        return pair_matrix(capped, prediction.queried)

    def _directed(self, prediction: Prediction, row: int, where: Int[Tensor, " N"]) -> Float[Tensor, "N N"]:
        """What each of these positions tells of each, before the two ways are averaged."""
        head, log_p = self.tables, prediction.log_probs[row, where].float()
        with torch.no_grad():
            known = head.features(prediction.hidden[row, where][None], log_p[None], where[None])
            give, keep = exclusion(prediction.log_probs[[row]], prediction.masked[[row]])
            links = head.links()
        probs = torch.where(log_p.exp() >= self.least, log_p.exp(), 0)
        source, drawn = torch.nonzero(probs, as_tuple=True)
        weight = (probs / probs.sum(1, keepdim=True))[source, drawn]
        heard = (links[:, where, :, None] * keep[0]).permute(0, 2, 1, 3).flatten(2)  # [C, L, N * V]
        receiver = known
        mixture, left = torch.zeros(len(where), *log_p.shape), torch.zeros(len(where), len(where))
        mixture, left = mixture.to(log_p.device), left.to(log_p.device)
        for some in torch.arange(len(source), device=source.device).split(max(1, PAIRS // len(where))):
            i, v = source[some], drawn[some]
            sent = links[:, where[i]] * give[0, :, v].T  # [C, S, L]
            paths = torch.bmm(sent, heard).unflatten(2, log_p.shape).permute(1, 2, 3, 0)
            sender = Features(*(x[0, i][:, None] for x in (known.symbol, known.form)))
            with torch.enable_grad():  # no parameter asks for one: these are products over all pairs at once, of this row alone
                said = head.messages(sender, v[:, None], receiver, head.pair[where[i][:, None], where], paths)
                log_q = head.moved(log_p, said.clamp_max(0), said.clamp_min(0), said)
            q = log_q.exp() * weight[some][:, None, None]
            mixture.index_add_(0, i, q)
            left.index_add_(0, i, -(q * log_q).sum(2))
        return (-torch.xlogy(mixture, mixture).sum(2) - left).double()
