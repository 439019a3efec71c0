import torch

from heads import tables, tiny
from pairmi.counting import Counting
from pairmi.draw import Streams
from pairmi.info import pairs
from studies.table_mi import TableMI
from worlds import generator

MODEL = tiny()
CANVASES = torch.where(torch.rand(9, 8, generator=generator(1)) < 0.8, 4, 1)


def test_mutual_information_follows_by_formula() -> None:
    """sum_v p_i(v) KL(q_{j|v} || m_j) from what is said after each symbol alone, capped by both entropies, both ways averaged."""
    head, prediction = tables(), Counting(MODEL)(CANVASES)
    head.symbol.weight.mul_(10)  # which symbol is drawn matters
    by_tables = TableMI(head, least=0.0)  # nothing left out
    found = by_tables(prediction, Counting(MODEL), Streams(0, torch.arange(len(CANVASES))))
    p, capped = prediction.log_probs.double().exp(), torch.zeros_like(found)
    for row, i, j in torch.nonzero(pairs(prediction.masked)).tolist():
        one, zero = prediction.rows(torch.tensor([row] * 4)), torch.zeros(4, dtype=torch.long)
        state = head.after(head.begin(one, torch.tensor([[i, j]] * 4), MODEL), zero, torch.arange(4), MODEL)
        q, weight = head.shifted(state, zero + 1).double().exp(), p[row, i] / p[row, i].sum()
        mixture = weight @ q
        nats = float(weight @ (q * (q.log() - mixture.log())).sum(1))
        capped[row, i, j] = min(nats, *(float(-(x * x.log()).sum()) for x in (p[row, i], p[row, j])))
    assert float(capped.max()) > 0.05
    assert torch.allclose(found, 0.5 * (capped + capped.mT), atol=1e-5)
    with torch.inference_mode():
        assert torch.equal(by_tables(Counting(MODEL)(CANVASES), Counting(MODEL), Streams(0, torch.arange(len(CANVASES)))), found)
    for row in range(len(CANVASES)):
        alone = by_tables(prediction.rows(torch.tensor([row])), Counting(MODEL), Streams(0, torch.arange(1)))
        assert torch.equal(alone[0], found[row])
