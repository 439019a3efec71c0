import math

import pytest
import torch

from pairmi.tasks.sudoku.rules import valid
from pairmi.tasks.sudoku.solver import solve
from pairmi.training.denoise import Corpus
from pairmi.training.sudoku import SudokuCorpus
from pairmi.types import Prediction, Tokens, Vocab


class Solving:
    """A backbone that puts all its belief on the solution, or the same on every digit."""

    vocab, length = Vocab(tuple("123456789")), 81

    def __init__(self, knows: bool) -> None:
        self.knows = knows

    def __call__(self, tokens: Tokens) -> Prediction:
        log_probs = torch.full((len(tokens), 81, 9), -math.log(9))
        if self.knows:
            solved = torch.stack([torch.from_numpy(solve(canvas)[0]) for canvas in tokens.numpy()])
            log_probs = torch.full_like(log_probs, -30.0).scatter(2, solved[:, :, None], 0.0)
        return Prediction(tokens, log_probs, torch.zeros(len(tokens), 81, 1))


@pytest.fixture(scope="module")
def corpus() -> SudokuCorpus:
    return SudokuCorpus(grids=5, validation=6, solved_on=3)


def test_draws_are_valid_and_new_every_time(corpus: SudokuCorpus) -> None:
    drawn = corpus.draw(400, torch.Generator().manual_seed(1))
    assert isinstance(corpus, Corpus)
    assert valid(drawn).all()
    assert len(drawn.unique(dim=0)) == 400
    assert torch.equal(drawn, corpus.draw(400, torch.Generator().manual_seed(1)))


def test_a_solver_scores_everything_and_the_ignorant_nothing(corpus: SudokuCorpus) -> None:
    known = corpus.evaluate(Solving(True))
    assert known["puzzle_cell_accuracy"] == known["solved"] == 1
    assert known["puzzle_nll"] == 0
    ignorant = corpus.evaluate(Solving(False))
    assert ignorant["puzzle_nll"] == pytest.approx(math.log(9), abs=1e-5)
    assert ignorant["puzzle_cell_accuracy"] < 0.3
    assert ignorant["solved"] == 0


def test_it_tells_what_the_sequences_depend_on(corpus: SudokuCorpus) -> None:
    about = corpus.about()
    assert (about["name"], about["grids"], about["seed"], about["validation"]) == ("sudoku", 5, 0, 6)
    assert SudokuCorpus(5, seed=1, validation=1).about() != about
