import pytest
import torch

from pairmi.training.losses import LOSSES, balanced, mse, root

TRUE = torch.tensor([[0.1, 0.5, 0.0], [0.01, 0.02, 0.03]])
WITHIN = torch.tensor([[True, True, False], [True, True, True]])


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_zero_at_the_truth_and_see_masked_pairs_only(name: str) -> None:
    loss = LOSSES[name]
    elsewhere = TRUE.clone()
    elsewhere[0, 2] = 7.0
    assert float(loss(elsewhere, TRUE, WITHIN)) == 0
    guess = (TRUE + 0.1).requires_grad_()
    loss(guess, TRUE, WITHIN).backward()
    assert (guess.grad[WITHIN] > 0).all()
    assert guess.grad[0, 2] == 0
    assert torch.isfinite(loss(-TRUE, TRUE, torch.zeros_like(WITHIN)))


def test_mse_is_the_mean_over_masked_pairs() -> None:
    assert float(mse(TRUE + torch.tensor([[0.1], [0.2]]), TRUE, WITHIN)) == pytest.approx((2 * 0.01 + 3 * 0.04) / 5)
    assert root(TRUE + 0.1, TRUE, WITHIN) > mse(TRUE + 0.1, TRUE, WITHIN)


def test_balanced_is_one_less_r2_of_each_state() -> None:
    means = torch.stack([row[w].mean().expand(3) for row, w in zip(TRUE, WITHIN, strict=True)])
    assert float(balanced(means, TRUE, WITHIN, floor=0.0)) == pytest.approx(1)
    assert float(balanced(means, TRUE, WITHIN, floor=1.0)) < 0.1
