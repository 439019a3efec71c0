import pytest
import torch

from pairmi.training.losses import LOSSES, balanced, mse, poisson, root

TRUE = torch.tensor([[0.1, 0.5, 0.0], [0.01, 0.02, 0.03]])
WITHIN = torch.tensor([[True, True, False], [True, True, True]])


def mean(parts: tuple[torch.Tensor, torch.Tensor]) -> float:
    return float(parts[0] / parts[1])


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_zero_at_the_truth_and_see_masked_pairs_only(name: str) -> None:
    loss = LOSSES[name]
    elsewhere = TRUE.clone()
    elsewhere[0, 2] = 7.0
    assert mean(loss(elsewhere, TRUE, WITHIN)) == 0
    guess = (TRUE + 0.1).requires_grad_()
    loss(guess, TRUE, WITHIN)[0].backward()
    assert (guess.grad[WITHIN] > 0).all()
    assert guess.grad[0, 2] == 0
    assert torch.isfinite(loss(-TRUE, TRUE, torch.zeros_like(WITHIN))[0])


@pytest.mark.parametrize("name", LOSSES)
def test_the_parts_of_a_batch_add_up(name: str) -> None:
    guess = TRUE + 0.1
    parts = [LOSSES[name](guess[n : n + 1], TRUE[n : n + 1], WITHIN[n : n + 1]) for n in range(2)]
    whole = LOSSES[name](guess, TRUE, WITHIN)
    assert float(parts[0][0] + parts[1][0]) == pytest.approx(float(whole[0]))
    assert float(parts[0][1] + parts[1][1]) == float(whole[1])


def test_mse_is_the_mean_over_masked_pairs() -> None:
    assert mean(mse(TRUE + torch.tensor([[0.1], [0.2]]), TRUE, WITHIN)) == pytest.approx((2 * 0.01 + 3 * 0.04) / 5)
    assert mean(root(TRUE + 0.1, TRUE, WITHIN)) > mean(mse(TRUE + 0.1, TRUE, WITHIN))


def test_balanced_is_one_less_r2_of_each_state() -> None:
    means = torch.stack([row[w].mean().expand(3) for row, w in zip(TRUE, WITHIN, strict=True)])
    assert mean(balanced(means, TRUE, WITHIN, floor=0.0)) == pytest.approx(1)
    assert mean(balanced(means, TRUE, WITHIN, floor=1.0)) < 0.1


def test_noise_does_not_move_the_least_of_the_poisson_deviance() -> None:
    """Labels of 0 and 0.2, as often: the best guess is their mean; by square roots it is less."""
    noisy, all_of = torch.tensor([[0.0, 0.2]]), torch.ones(1, 2, dtype=torch.bool)
    guesses = torch.linspace(0.01, 0.2, 191)
    best = {
        loss: float(guesses[torch.stack([loss(guess.expand(1, 2), noisy, all_of)[0] for guess in guesses]).argmin()])
        for loss in (poisson, root)
    }
    assert best[poisson] == pytest.approx(0.1, abs=2e-3)
    assert best[root] < 0.095
