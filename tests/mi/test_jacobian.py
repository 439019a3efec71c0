import torch

from pairmi.counting import Counting
from pairmi.mi.maps import categorical_jacobian
from pairmi.types import Prediction, Tokens, Vocab
from worlds import generator


class Coupled:
    """A Potts model: the logits at j are a field plus what each other position adds by its symbol."""

    vocab = Vocab(tuple("abc"))

    def __init__(self, length: int) -> None:
        raw = torch.randn(length, 3, length, 3, generator=generator(3)).double()
        apart = 1 - torch.eye(length)[:, None, :, None]
        self.length, self.couplings = length, 0.5 * (raw + raw.permute(2, 3, 0, 1)) * apart
        self.field = torch.randn(length, 3, generator=generator(4)).double()

    def __call__(self, tokens: Tokens) -> Prediction:
        one_hot = torch.eye(3, dtype=torch.float64)[tokens]
        logits = self.field + torch.einsum("bia,iajc->bjc", one_hot, self.couplings)
        return Prediction(tokens, logits.log_softmax(-1), logits)


def test_it_finds_the_couplings_of_a_potts_model() -> None:
    """Centred, they are the Jacobian, whatever the sequence, and although only normalised log-probabilities are seen."""
    model = Coupled(5)
    centred = model.couplings
    for index in (0, 1, 2, 3):
        centred = centred - centred.mean(index, keepdim=True)
    expected = centred.square().sum((1, 3)).sqrt().fill_diagonal_(0)
    for seed in (1, 2):
        sequence = torch.randint(3, (5,), generator=generator(seed))
        every = torch.arange(3).expand(5, 3)
        torch.testing.assert_close(categorical_jacobian(Counting(model), sequence, every, batch_rows=4), expected)


def test_some_symbols_give_the_couplings_among_these() -> None:
    model, some = Coupled(4), torch.tensor([[0, 1], [2, 0], [1, 2], [1, 0]])
    part = model.couplings.gather(1, some[:, :, None, None].expand(-1, -1, 4, 3)).gather(3, some.expand(4, 2, 4, 2))
    for index in range(4):
        part = part - part.mean(index, keepdim=True)
    expected = part.square().sum((1, 3)).sqrt().fill_diagonal_(0)
    meter = Counting(model)
    torch.testing.assert_close(categorical_jacobian(meter, torch.tensor([0, 1, 2, 0]), some), expected)
    assert meter.rows == 8
