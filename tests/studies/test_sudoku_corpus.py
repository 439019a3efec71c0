import math

import pytest
import torch

from pairmi.tasks.sudoku.puzzles import Puzzles
from pairmi.tasks.sudoku.rules import valid
from pairmi.tasks.sudoku.solver import count_solutions, solve
from pairmi.tasks.sudoku.techniques import Technique
from pairmi.types import PairmiError, Prediction, Tokens, Vocab
from studies.denoise import Corpus
from studies.sudoku_corpus import SudokuCorpus
from studies.trajectories import Determines


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
    return SudokuCorpus(grids=5, validation=6, solved_on=3, generating=0.25)


def test_draws_are_valid_and_new_every_time(corpus: SudokuCorpus) -> None:
    drawn = corpus.draw(400, torch.Generator().manual_seed(1))
    assert isinstance(corpus, Corpus)
    assert valid(drawn).all()
    assert len(drawn.unique(dim=0)) == 400
    assert torch.equal(drawn, corpus.draw(400, torch.Generator().manual_seed(1)))


def test_trajectories_start_from_puzzles_and_from_nothing(corpus: SudokuCorpus) -> None:
    noisy, clean = corpus.start(200, torch.Generator().manual_seed(2))
    empty = (noisy == 9).all(1)
    assert valid(clean).all()
    assert 20 < int(empty.sum()) < 80  # a quarter
    assert torch.equal(torch.where(noisy == 9, clean, noisy), clean)
    givens = (noisy != 9).sum(1)[~empty]
    assert givens.min() >= 20
    assert givens.max() <= 32
    assert all(count_solutions(canvas) == 1 for canvas in noisy[~empty].numpy())
    assert [len(part) for part in corpus.start(0, torch.Generator())] == [0, 0]


def test_canvas_and_solution_turn_together(corpus: SudokuCorpus) -> None:
    noisy, clean = corpus.start(50, torch.Generator().manual_seed(3))
    turned, behind = corpus.turned(noisy, clean, torch.Generator().manual_seed(4))
    assert valid(behind).all()
    assert torch.equal(torch.where(turned == 9, behind, turned), behind)
    assert torch.equal((turned == 9).sum(1), (noisy == 9).sum(1))
    assert not torch.equal(turned, noisy)


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


def test_trajectories_start_from_minimal_puzzles_as_hard_as_wanted() -> None:
    corpus = SudokuCorpus(grids=5, validation=8, solved_on=4, generating=0.1, minimal=0.5, needing=Technique.SUBSETS)
    noisy, clean = corpus.start(60, torch.Generator().manual_seed(2))
    assert torch.equal(torch.where(noisy == 9, clean, noisy), clean)
    assert isinstance(corpus, Determines)
    puzzle = corpus.determined(noisy)
    assert torch.equal(puzzle, (noisy != 9).any(1))
    assert all(count_solutions(canvas) == 1 for canvas in noisy[puzzle].numpy())
    hard = Puzzles(noisy, clean).grades[puzzle] >= Technique.SUBSETS
    assert 0.4 < float(hard.double().mean()) < 0.9  # half, and some of the others
    figures = corpus.evaluate(Solving(True))
    assert figures["minimal_solved"] == figures["minimal_cell_accuracy"] == figures["solved"] == 1
    assert corpus.about()["needing"] == Technique.SUBSETS


def test_all_starts_can_be_minimal() -> None:
    corpus = SudokuCorpus(grids=5, validation=1, generating=0.0, minimal=1.0)
    for canvas in corpus.start(4, torch.Generator().manual_seed(1))[0].numpy():
        for cell in (canvas != 9).nonzero()[0]:
            fewer = canvas.copy()
            fewer[cell] = 9
            assert count_solutions(fewer) == 2


def test_impossible_shares_are_refused() -> None:
    with pytest.raises(PairmiError, match=r"SudokuCorpus: minimal is the share of minimal puzzles, between 0 and 1, got 1.5"):
        SudokuCorpus(grids=1, minimal=1.5)
