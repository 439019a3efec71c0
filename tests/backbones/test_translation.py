"""From the logits of a foreign model to log-probabilities of our symbols."""

import pytest
import torch

from pairmi.backbones.translation import Translation
from pairmi.info import LARGE, PIECE


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size", [LARGE // 2, LARGE + 5, PIECE // 3])
@pytest.mark.parametrize("left_out", [(), (0,), (0, 7, 100), tuple(range(0, 400, 9))])  # one run of usable ids, two, several, and too many
def test_usable_columns_are_normalised_among_themselves(size: int, left_out: tuple[int, ...], dtype: torch.dtype) -> None:
    ids = {str(n): n for n in range(size) if n not in left_out}
    logits = 5 * torch.randn(2, 3, size + 1, generator=torch.Generator().manual_seed(0)).to(dtype)
    plain = torch.log_softmax(logits[:, :, list(ids.values())].float(), dim=-1)
    found = Translation(ids, size, (), ()).log_probs(logits)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, plain, rtol=0, atol=1e-5)
    assert torch.equal(found[1:], Translation(ids, size, (), ()).log_probs(logits[1:]))  # a row's bits do not depend on its batch


def test_gradients_pass_through_large_vocabularies() -> None:
    logits = torch.randn(1, 2, LARGE + 6, requires_grad=True)
    Translation({str(n): n for n in range(LARGE + 5)}, LARGE + 5, (), ()).log_probs(logits)[0, 0, 0].backward()
    assert float(logits.grad[0, 0].abs().sum()) > 0
    assert float(logits.grad[0, 1].abs().sum()) == 0
