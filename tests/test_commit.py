import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pairmi.commit import Draft, Sampling, acceptance, certain, residual, verified
from pairmi.counting import Counting
from pairmi.decoding import iter_decode
from pairmi.draw import Streams, draw, draw_at
from pairmi.selectors.top_k import Sequential, TopK
from pairmi.types import Prediction, Selection, Turn
from worlds import Incoherent, Recipe, decode, generator, many, recipes


def two_beliefs(seed: int, size: int, sharpness: float, impossible: float) -> tuple[torch.Tensor, torch.Tensor]:
    rng = generator(seed)
    logits = sharpness * torch.randn(2, 5, size, generator=rng, dtype=torch.float64)
    logits[:, :, 1:][torch.rand(2, 5, size - 1, generator=rng) < impossible] = -torch.inf
    return logits.log_softmax(-1).unbind(0)


@many(200)
@given(st.integers(0, 2**32), st.integers(2, 6), st.floats(0, 8), st.sampled_from([0.0, 0.3, 0.7]))
def test_accepted_and_redrawn_together_are_the_conditional(seed: int, size: int, sharpness: float, impossible: float) -> None:
    conditional, marginal = two_beliefs(seed, size, sharpness, impossible)
    p, q = conditional.exp(), marginal.exp()
    accepted = q * acceptance(conditional, marginal)
    redrawn = residual(conditional, marginal)
    excess = p - accepted
    torch.testing.assert_close(excess.clamp_min(0), torch.where(excess.sum(-1, keepdim=True) > 1e-12, redrawn, 0), atol=1e-12, rtol=0)
    chance = 1 - accepted.sum(-1, keepdim=True)
    torch.testing.assert_close(accepted + chance * redrawn / redrawn.sum(-1, keepdim=True), p, atol=1e-12, rtol=0)
    assert (acceptance(conditional, marginal) <= 1).all()


def test_equal_beliefs_are_always_accepted_and_leave_something_to_draw_from() -> None:
    belief, _ = two_beliefs(0, 4, 2.0, 0.0)
    assert (acceptance(belief, belief) == 1).all()
    torch.testing.assert_close(residual(belief, belief), belief.exp())


def test_certain_wants_the_likeliest_symbol_and_enough_of_it() -> None:
    conditional = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.5, 0.5]]).log()
    draft = torch.tensor([0, 1, 0, 1])
    assert certain(conditional, draft, 0.8).tolist() == [True, False, False, False]
    assert certain(conditional, draft, 0.0).tolist() == [True, False, True, False]  # the first of equals is the likeliest


@many(60)
@given(recipes(), st.integers(1, 4), st.sampled_from([None, 0.0, 0.6, 0.999]))
def test_verification_is_the_plain_loop_over_the_members(recipe: Recipe, k: int, sure: float | None) -> None:
    model, tokens = recipe.incoherent()
    tokens = tokens[(tokens == recipe.size).any(1)]
    if not len(tokens):
        return
    streams, meter, sampling = (
        Streams(recipe.seed, torch.arange(len(tokens))),
        Counting(model),
        Sampling(greedy=sure is not None, accept=sure or 0.0),
    )
    prediction = model(tokens)
    selection = TopK(k)(Turn(prediction, meter, streams, {}))
    draft = drafted(prediction, selection, streams, sampling)
    commit = verified(meter, prediction, draft, streams, sampling)
    coins = streams.uniform("accept", tokens.shape[1])
    for row in range(len(tokens)):
        order = selection.order[row].tolist()
        members = [order.index(n) for n in range(int(selection.chosen[row].sum()))]
        canvas, redrawn = tokens[row].clone(), False
        for n, i in enumerate(members):
            if n:
                p, q = model(canvas[None]).log_probs[0, i], prediction.log_probs[row, i]
                x = int(draft.symbols[row, i])
                if sure is not None and not (int(p.argmax()) == x and float(p[x].exp()) >= sure):
                    break
                if sure is None and not coins[row, i] < (p[x] - q[x]).exp().clamp_max(1):
                    left = (p.exp() - q.exp()).clamp_min(0)
                    canvas[i] = draw(left.log()[None], streams, torch.tensor([row]), torch.tensor([0]), "residual")[0]
                    redrawn = True
                    break
            canvas[i] = draft.symbols[row, i]
        assert torch.equal(commit.tokens[row], canvas)
        assert torch.equal(commit.committed[row], canvas != tokens[row])
        if bool((canvas == recipe.size).any()) and not redrawn:  # the next prediction is the one of the new canvas
            assert torch.equal(commit.upcoming.tokens[row], canvas)
            assert torch.equal(commit.upcoming.log_probs[row], model(canvas[None]).log_probs[0])
        completes = len(members) == int((tokens[row] == recipe.size).sum())
        assert commit.needed[row] == len(members) - completes
    assert meter.calls <= 1
    assert meter.rows == sum(commit.needed)


def drafted(prediction: Prediction, selection: Selection, streams: Streams, sampling: Sampling) -> Draft:
    """A rule's choice with drawn symbols, as the loop makes it."""
    rows, places = torch.nonzero(selection.chosen, as_tuple=True)
    symbols = prediction.tokens.index_put((rows, places), draw_at(prediction.log_probs, (rows, places), streams, greedy=sampling.greedy))
    members = torch.where(selection.chosen, selection.order, 99).argsort(dim=1, stable=True)
    order = torch.where(selection.chosen, selection.order, -1)
    return Draft(prediction.tokens, order, members, symbols, selection.chosen.sum(1).tolist(), prediction.masked.sum(1).tolist())


@pytest.mark.parametrize("greedy", [False, True])
def test_small_pieces_change_nothing(greedy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The prefixes may be evaluated a few at a time, whatever is accepted."""
    model, tokens = Incoherent(6, 3, 0, 2.0), torch.where(torch.arange(6) < torch.arange(1, 7)[:, None], 3, 0)
    sampling = Sampling(1, greedy=greedy, verify=True, accept=0.4)
    whole = decode(model, tokens, TopK(5), sampling)
    monkeypatch.setattr("pairmi.counting.NUMBERS", 1)
    monkeypatch.setattr("pairmi.commit.PIECE", 1)
    pieces = decode(model, tokens, TopK(5), sampling)
    assert torch.equal(whole.tokens, pieces.tokens)
    assert torch.equal(whole.passes, pieces.passes)


@pytest.mark.parametrize("greedy", [False, True])
def test_verified_one_by_one_costs_what_plain_does(greedy: bool) -> None:
    model = Incoherent(6, 3, 0, 2.0)
    tokens = torch.where(torch.arange(6) < torch.arange(1, 7)[:, None], 3, 0)
    one, other = (decode(model, tokens, Sequential(), Sampling(1, greedy=greedy, verify=verify)) for verify in (False, True))
    assert torch.equal(one.tokens, other.tokens)
    assert one.passes.tolist() == other.passes.tolist() == [1, 2, 3, 4, 5, 6]
    assert one.rows.tolist() == other.rows.tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("accept", [0.0, 0.5, 1.0])
def test_greedy_verification_loses_no_pass(accept: float) -> None:
    model, unknown = Incoherent(6, 3, 0, 2.0), torch.full((20, 6), 3)
    tokens = unknown.clone()
    tokens[:, 0] = torch.arange(20) % 3
    sampling = Sampling(greedy=True, verify=True, accept=accept)
    out, commits = decode(model, tokens, TopK(6), sampling), torch.zeros(20, dtype=torch.long)
    for step in iter_decode(model, tokens, TopK(6), sampling):
        commits[step.rows] += 1
    assert (out.passes <= commits + 1).all()  # one for the first prediction, then one a round
    assert (out.passes <= 6).all()
    sequential = decode(model, tokens, Sequential(), Sampling(greedy=True))
    assert (out.passes <= sequential.passes).all()
