from itertools import product

import pytest
import torch

from heads import RandomStates, low_rank, tiny
from pairmi.draw import Streams
from pairmi.mi.hops import SURE, Hop, openness
from pairmi.types import Prediction


def plain(hop: Hop, logit: torch.Tensor, mixed: torch.Tensor, places: torch.Tensor, inner: torch.Tensor, low: torch.Tensor) -> torch.Tensor:
    """The corrected logits of one row, path by path."""
    count = len(low)
    features = torch.cat([mixed, places])  # [K, N, N]
    raw = torch.einsum("ck,kij->cij", hop.edge.weight, features) + hop.edge.bias[:, None, None] + logit
    raw = raw + torch.einsum("ck,kj->cj", hop.through, inner)[:, None]
    edges = torch.sigmoid(raw) * low / (low + SURE)
    two, three = torch.zeros_like(edges), torch.zeros_like(edges)
    for i, j, k in product(range(count), repeat=3):
        two[:, i, j] += edges[:, i, k] * edges[:, j, k]
        for other in range(count):
            three[:, i, j] += edges[:, i, k] * edges[:, other, k] * edges[:, j, other]
    paths = torch.stack([1 / (1 + two), 1 / (1 + three)], 1).flatten(0, 1)
    after = (torch.einsum("mk,kij->mij", hop.mix.weight, torch.cat([mixed, paths])) + hop.mix.bias[:, None, None]).relu()
    return logit + torch.einsum("m,mij->ij", hop.out, after)


def a_hop() -> Hop:
    torch.manual_seed(0)
    hop = Hop(mixer=5, places=3, inner=7, edges=2)
    for weight in (hop.out, hop.edge.weight, hop.edge.bias, hop.through):
        torch.nn.init.normal_(weight)
    return hop


@pytest.mark.parametrize("shared", [False, True])
def test_a_hop_is_its_formula(shared: bool) -> None:
    hop = a_hop()
    logit, mixed, inner = torch.randn(4, 1, 36), torch.rand(4, 5, 36), torch.randn(4, 7, 6)
    places = torch.randn(1 if shared else 4, 3, 36)
    low = torch.rand(4, 6, 6)
    low = (0.5 * (low + low.mT)).diagonal_scatter(torch.zeros(4, 6), dim1=1, dim2=2)
    with torch.no_grad():
        found, features = hop(inner, openness(low).view(4, 1, 36), logit, mixed, places)
        assert features.shape == mixed.shape
        for row, place in enumerate(places.expand(4, -1, -1)):
            expected = plain(hop, logit[row].view(6, 6), mixed[row].view(5, 6, 6), place.view(3, 6, 6), inner[row], low[row])
            torch.testing.assert_close(found[row].view(6, 6), expected)


def test_what_is_known_and_what_is_sure_passes_nothing_on() -> None:
    hop = a_hop()
    logit, mixed, places, inner = torch.randn(1, 1, 36), torch.rand(1, 5, 36), torch.randn(1, 3, 36), torch.randn(1, 7, 6)
    low = torch.ones(1, 6, 6)
    low[:, 4:] = low[:, :, 4:] = 0
    other = logit.clone().view(6, 6)
    other[4:] = other[:, 4:] = 9.0
    open_to = openness(low).view(1, 1, 36)
    with torch.no_grad():
        first, second = (hop(inner, open_to, z, mixed, places)[0].view(6, 6)[:4, :4] for z in (logit, other.view(1, 1, 36)))
    assert torch.equal(first, second)


@pytest.mark.parametrize("length", [8, 0])
def test_a_fresh_hop_corrects_nothing(length: int) -> None:
    model = tiny()
    prediction = model(torch.stack([state.tokens for state in RandomStates().draw(model, 0, 0, 6)]))
    without, fresh = low_rank(length=length), low_rank(length=length, hops=2)
    fresh.load_state_dict(without.state_dict(), strict=False)
    for hop in fresh.hops:
        torch.nn.init.zeros_(hop.out)
    first, second = (head(prediction, model, Streams(0, torch.arange(6))) for head in (without, fresh))
    assert torch.equal(first, second)


def test_gradients_reach_every_weight_and_are_finite_for_extreme_logits() -> None:
    hop = a_hop()
    logit = torch.tensor([-1e4, 1e4, 0.0]).repeat(12).view(1, 1, 36).requires_grad_()
    mixed, places, inner = torch.rand(1, 5, 36).requires_grad_(), torch.randn(1, 3, 36), torch.randn(1, 7, 6)
    found, features = hop(inner, openness(torch.rand(1, 6, 6)).view(1, 1, 36), logit, mixed, places)
    (found.sum() + features.square().sum()).backward()
    for weight in (logit, mixed, *hop.parameters()):
        assert weight.grad is not None
        assert weight.grad.isfinite().all()
        assert weight.grad.abs().sum() > 0


def test_beyond_its_reach_a_head_takes_no_hops() -> None:
    rng = torch.Generator().manual_seed(0)
    tokens = torch.randint(4, (6, 40), generator=rng)
    for row, unknown in enumerate((3, 16, 17, 32, 33, 40)):
        tokens[row, torch.randperm(40, generator=rng)[:unknown]] = 4
    log_probs, hidden = torch.randn(6, 40, 4, generator=rng).log_softmax(2), torch.randn(6, 40, 16, generator=rng)
    prediction = Prediction(tokens, log_probs, hidden)
    without, once = low_rank(length=0), low_rank(length=0, hops=1)
    always, near = low_rank(length=0, hops=2), low_rank(length=0, hops=2, reach=32, last_reach=16)
    always.load_state_dict(without.state_dict(), strict=False)
    once.load_state_dict({name: always.state_dict()[name] for name in once.state_dict()})
    near.load_state_dict(always.state_dict())
    with torch.no_grad():
        direct, one, corrected, found = (head.estimate(prediction) for head in (without, once, always, near))
    assert not torch.allclose(direct, one) and not torch.allclose(one, corrected)  # noqa: PT018
    assert torch.equal(found[:2], corrected[:2])
    assert torch.equal(found[2:4], one[2:4])
    assert torch.equal(found[4:], direct[4:])
