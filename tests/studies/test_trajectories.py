import pytest
import torch
from torch import Tensor

from pairmi.types import PairmiError
from studies.trajectories import Starts, Trajectories


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class FromNothing:
    """Sequences of a joint table, all hidden at first."""

    def __init__(self, table: Tensor) -> None:
        self.table = table

    def start(self, count: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        clean = self.table[torch.randint(len(self.table), (count,), generator=rng)]
        return torch.full_like(clean, 2), clean

    def turned(self, noisy: Tensor, clean: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        return noisy, clean


BITS = FromNothing(torch.tensor([[0, 0, 0, 1], [0, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 1, 1]]))


def test_some_of_what_is_sure_is_shown_as_it_truly_is() -> None:
    one = Trajectories(50, BITS, 2, rng(), sure=0.75)
    assert isinstance(BITS, Starts)
    assert (one.noisy == 2).all()
    confidence = torch.tensor([0.9, 0.3, 0.8, 0.1]).expand(50, -1)
    one.follow(confidence, rng(1))
    shown = one.noisy != 2
    assert torch.equal(one.noisy[shown], one.clean[shown])
    assert {tuple(row) for row in shown.tolist()} == {(True, False, False, False), (True, False, True, False)}


def test_where_nothing_is_sure_it_lingers_or_shows_the_surest() -> None:
    one = Trajectories(400, BITS, 2, rng(), sure=0.98, linger=0.75)
    confidence = torch.tensor([0.9, 0.3, 0.8, 0.1]).expand(400, -1)
    one.follow(confidence, rng(1))
    shown = one.noisy != 2
    assert {tuple(row) for row in shown.tolist()} == {(False, False, False, False), (True, False, False, False)}
    assert abs(float(shown[:, 0].double().mean()) - 0.25) < 0.08


def test_what_is_sure_to_the_end_starts_anew() -> None:
    one = Trajectories(30, BITS, 2, rng(), sure=0.5)
    clean = one.clean.clone()
    confidence = torch.full((30, 4), 0.9)
    confidence[:10, 3] = 0.1  # these have something unsure left
    one.follow(confidence, rng(1))
    assert torch.equal(one.clean[:10], clean[:10])
    assert (one.noisy[:10, 3] == 2).all()
    assert (one.noisy[:10, :3] != 2).any(1).all()
    assert (one.noisy[10:] == 2).all()
    assert not torch.equal(one.clean[10:], clean[10:])


def test_restoring_the_tensors_restores_the_pool() -> None:
    first, second = Trajectories(20, BITS, 2, rng()), Trajectories(20, BITS, 2, rng(5))
    first.follow(torch.rand(20, 4, generator=rng(2)), rng(3))
    for name, tensor in second.tensors().items():
        tensor.copy_(first.tensors()[name])
    for one in (first, second):
        one.batch(rng(4))
        one.follow(torch.rand(20, 4, generator=rng(6)) * 0.9, rng(7))
    assert torch.equal(first.noisy, second.noisy)
    assert torch.equal(first.clean, second.clean)


def test_the_conditionals_at_visited_states_are_those_of_the_data() -> None:
    """Frequencies of the hidden symbols at every canvas that is met, against the exact conditionals of the table."""
    table, symbols = BITS.table, 2
    one, seen = Trajectories(4000, BITS, symbols, rng(), sure=0.7), {}
    for step in range(12):
        noisy, clean = one.batch(rng(step))
        for canvas, truth in zip(noisy.tolist(), clean.tolist(), strict=True):
            seen.setdefault(tuple(canvas), []).append(truth)
        # an order that depends on what is visible, as a model's confidences do
        confidence = torch.stack([torch.rand(4, generator=rng(hash(tuple(row)) % 1000)) for row in noisy.tolist()])
        one.follow(confidence, rng(100 + step))
    judged = 0
    for canvas, truths in seen.items():
        if len(truths) < 800:
            continue
        fits = ((table == torch.tensor(canvas)) | (torch.tensor(canvas) == symbols)).all(1)
        expected = table[fits].double().mean(0)
        assert (torch.tensor(truths).double().mean(0) - expected).abs().max() < 0.06
        judged += len(set(canvas)) > 1
    assert judged >= 3


class Determined(FromNothing):
    """The first symbol tells the others in half of the rows; the others begin with nothing."""

    def start(self, count: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        clean = torch.rand(count, 1, generator=rng).round().long().expand(-1, 4).clone()
        noisy = torch.full_like(clean, 2)
        told = torch.rand(count, generator=rng) < 0.5
        noisy[told, 0] = clean[told, 0]
        return noisy, clean

    def determined(self, noisy: Tensor) -> Tensor:
        return (noisy != 2).any(1)


TOLD = Determined(BITS.table)


def test_a_row_begins_again_where_the_model_was_first_wrong() -> None:
    one = Trajectories(400, TOLD, 2, rng(), sure=0.75, again=0.5)
    told = one.tensors()["determined"].clone()
    begun = one.noisy.clone()
    confidence = torch.tensor([0.3, 0.9, 0.1, 0.2]).expand(400, -1)
    one.follow(confidence, rng(1), torch.zeros(400, 4))  # shows the second, where the likeliest symbol is wrong
    assert torch.equal(one.noisy[:, 1], one.clean[:, 1])
    later, truth = one.noisy.clone(), one.clean.clone()
    one.follow(torch.full((400, 4), 0.9), rng(2), torch.zeros(400, 4))  # all is sure: every row ends; this is not the first mistake
    again = (one.noisy == begun).all(1) & (one.clean == truth).all(1) & told
    assert not (one.noisy == later).all(1).any()
    assert 0.4 < float(again[told].double().mean()) < 0.9  # half of them, and those of which a new start is the same by chance
    assert not one.tensors()["met"].any()


def test_what_was_right_or_not_determined_starts_anew() -> None:
    def after(right: float, again: float) -> Trajectories:
        one = Trajectories(200, TOLD, 2, rng(), sure=0.5, again=again)
        one.follow(torch.full((200, 4), 0.9), rng(2), torch.full((200, 4), right))
        return one

    plain, right, wrong = after(0.0, 0.0), after(1.0, 0.99), after(0.0, 0.99)
    told = Trajectories(200, TOLD, 2, rng(), again=0.5).tensors()["determined"]
    assert torch.equal(plain.noisy, right.noisy)
    assert torch.equal(plain.noisy[~told], wrong.noisy[~told])
    assert torch.equal(plain.clean[~told], wrong.clean[~told])
    assert not torch.equal(plain.noisy[told], wrong.noisy[told])
    assert torch.equal(wrong.tensors()["determined"], TOLD.determined(wrong.noisy))


def test_restoring_the_tensors_restores_the_mistakes() -> None:
    first, second = Trajectories(50, TOLD, 2, rng(), again=0.5), Trajectories(50, TOLD, 2, rng(5), again=0.5)
    first.follow(torch.rand(50, 4, generator=rng(2)), rng(3), torch.zeros(50, 4))
    for name, tensor in second.tensors().items():
        tensor.copy_(first.tensors()[name])
    for one in (first, second):
        for step in range(6):
            one.batch(rng(step))
            one.follow(torch.rand(50, 4, generator=rng(10 + step)), rng(20 + step), torch.rand(50, 4, generator=rng(30 + step)))
    assert all(torch.equal(tensor, second.tensors()[name]) for name, tensor in first.tensors().items())


def test_mistakes_are_repeated_only_where_that_is_unbiased() -> None:
    with pytest.raises(
        PairmiError, match=r"Trajectories: again > 0 begins .* expected starts with `determined`, got FromNothing; set again"
    ):
        Trajectories(5, BITS, 2, rng(), again=0.5)
    assert set(Trajectories(5, BITS, 2, rng()).tensors()) == {"noisy", "clean"}
