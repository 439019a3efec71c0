import math
import zlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pairmi.draw import Streams, draw_at, gumbel
from worlds import generator, many

MANY = torch.arange(2000)


def everywhere(log_probs: torch.Tensor, streams: Streams, greedy: bool = False) -> torch.Tensor:
    """A symbol for every position."""
    rows, places = torch.nonzero(torch.ones(log_probs.shape[:2])).unbind(1)
    return draw_at(log_probs, (rows, places), streams, greedy=greedy).view(log_probs.shape[:2])


GOLDEN = 0x9E3779B97F4A7C15


@many(100)
@given(st.integers(-(2**70), 2**70), st.integers(0, 1000), st.permutations(range(6)), st.integers(0, 6))
def test_same_answers_in_every_batch_order_and_subset(seed: int, turn: int, order: list[int], size: int) -> None:
    index = torch.tensor([3, 0, 17, 2**40, 5, 99])
    whole = Streams(seed, index, turn).uniform("draw", 4, 3)
    keep = torch.tensor(order[:size], dtype=torch.long)
    assert torch.equal(Streams(seed, index[keep], turn).uniform("draw", 4, 3), whole[keep])
    assert torch.equal(Streams(seed, index).rows(keep).at(turn).uniform("draw", 4, 3), whole[keep])
    assert torch.equal(Streams(seed, index, turn).uniform("draw", 4, 3), whole)  # nothing is consumed


def test_seed_index_turn_purpose_and_place_all_matter() -> None:
    seeds = [Streams(seed, torch.arange(8)) for seed in (0, 1, -1, -2, 2**63, -(2**63) + 5, 10**30)]
    turns = [seeds[0].at(turn) for turn in (1, 2, 3)]
    numbers = [streams.uniform(purpose, 5, 7) for streams in (*seeds, *turns) for purpose in ("draw", "order")]
    flat = torch.stack(numbers).flatten()
    assert len(flat.unique()) == len(flat) == 10 * 2 * 8 * 35
    assert ((flat > 0) & (flat < 1)).all()
    assert flat.dtype == torch.float64


def test_shapes() -> None:
    assert Streams(0, torch.arange(3)).uniform("accept").shape == (3,)
    assert gumbel(Streams(0, torch.arange(3)).uniform("x", 2, 5)).shape == (3, 2, 5)


@pytest.mark.parametrize("seed", [0, 1, -1, 12345, 2**64 - 3])
def test_numbers_are_uniform(seed: int) -> None:
    numbers = Streams(seed, MANY).uniform("draw", 50).flatten().numpy()
    assert stats.kstest(numbers, "uniform").pvalue > 1e-3
    low_bits = (numbers * 2**40) % 1  # the last twelve bits
    assert stats.kstest(low_bits, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("neighbour", ["row", "turn", "seed", "place", "purpose"])
def test_neighbours_are_independent(neighbour: str) -> None:
    one, other = Streams(7, MANY), Streams(7, MANY)
    first = one.uniform("draw", 20)
    second = {
        "row": Streams(7, MANY + 1).uniform("draw", 20),
        "turn": other.at(1).uniform("draw", 20),
        "seed": Streams(8, MANY).uniform("draw", 20),
        "place": other.uniform("draw", 21)[:, 1:],
        "purpose": other.uniform("draws", 20),
    }[neighbour]
    assert abs(stats.pearsonr(first.flatten(), second.flatten()).statistic) < 4 / math.sqrt(first.numel())
    cells = (10 * first).long() * 10 + (10 * second).long()
    assert stats.chisquare(torch.bincount(cells.flatten(), minlength=100)).pvalue > 1e-3


def index_whose_first_bits_are(bits: int, seed: int, turn: int, purpose: str) -> int:
    """Run the mixing backwards: the sequence index whose first random word has these 64 bits."""

    def unshifted(x: int, by: int) -> int:
        out = x
        for _ in range(64 // by):
            out = x ^ (out >> by)
        return out

    def unmixed(x: int) -> int:
        x = unshifted(x, 31) * pow(0x94D049BB133111EB, -1, 2**64) % 2**64
        x = unshifted(x, 27) * pow(0xBF58476D1CE4E5B9, -1, 2**64) % 2**64
        return unshifted(x, 30)

    word = bits
    for salt in (0, zlib.crc32(purpose.encode()), turn, seed):
        word = (unmixed(word) - GOLDEN * (1 + salt)) % 2**64
    return word - 2**64 if word >= 2**63 else word


def test_extreme_words_stay_inside_the_open_interval() -> None:
    index = [index_whose_first_bits_are(bits, 5, 2, "draw") for bits in (0, 2**64 - 1)]
    streams = Streams(5, torch.tensor(index), 2)
    low, high = streams.uniform("draw", 1).flatten().tolist()
    assert 0 < low < 2**-52
    assert 1 - 2**-52 < high < 1
    assert gumbel(streams.uniform("draw", 1)).isfinite().all()


def test_gumbel_noise_is_gumbel() -> None:
    noise = gumbel(Streams(3, MANY).uniform("draw", 20))
    assert noise.dtype == torch.float64
    assert stats.kstest(noise.flatten(), "gumbel_r").pvalue > 1e-3


@many(20)
@given(st.integers(0, 2**32), st.integers(2, 6))
def test_draws_follow_their_probabilities(seed: int, size: int) -> None:
    log_probs = torch.randn(3, size, generator=generator(seed), dtype=torch.float64).log_softmax(-1)
    drawn = everywhere(log_probs.expand(4000, -1, -1), Streams(seed, torch.arange(4000)))
    for position in range(3):
        seen = torch.bincount(drawn[:, position], minlength=size)
        assert stats.chisquare(seen, 4000 * log_probs[position].exp()).pvalue > 1e-4
    pairwise = torch.bincount(drawn[:, 0] * size + drawn[:, 1], minlength=size**2)
    product = (log_probs[0].exp()[:, None] * log_probs[1].exp()).flatten()
    assert stats.chisquare(pairwise, 4000 * product).pvalue > 1e-4  # positions are drawn independently


def test_draws_do_not_depend_on_the_batch() -> None:
    log_probs = torch.randn(9, 4, 5, generator=generator(0)).log_softmax(-1)
    streams = Streams(1, torch.arange(9))
    whole = everywhere(log_probs, streams)
    keep = torch.tensor([8, 2, 5])
    assert torch.equal(everywhere(log_probs[keep], streams.rows(keep)), whole[keep])
    assert not torch.equal(everywhere(log_probs, streams.at(1)), whole)


def test_symbols_are_those_of_gumbel_noise_over_all_positions() -> None:
    """Only some positions are drawn, and they get what they would get if all were."""
    log_probs, streams = torch.randn(9, 4, 5, generator=generator(0)).log_softmax(-1), Streams(1, torch.arange(9), 3)
    noisy = log_probs.double() + gumbel(streams.uniform("draw", 4, 5))
    rows, places = torch.tensor([8, 0, 3, 3]), torch.tensor([1, 3, 0, 2])
    assert torch.equal(draw_at(log_probs, (rows, places), streams), noisy.argmax(-1)[rows, places])


@pytest.mark.parametrize("size", [1024, 1500, 5000])
def test_draws_from_large_alphabets_follow_their_probabilities(size: int) -> None:
    log_probs = (3 * torch.randn(2, size, generator=generator(size))).log_softmax(-1)
    drawn = everywhere(log_probs.expand(20000, -1, -1), Streams(4, torch.arange(20000)))
    for position in range(2):
        seen, expected = torch.bincount(drawn[:, position], minlength=size), 20000 * log_probs[position].double().exp()
        likely = expected > 5
        rest = torch.stack([seen[~likely].sum(), expected[~likely].sum()])
        observed, wanted = torch.cat([seen[likely].double(), rest[:1]]), torch.cat([expected[likely], rest[1:]])
        assert stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue > 1e-4


def test_large_alphabets_never_give_what_is_impossible() -> None:
    log_probs = torch.full((300, 1, 3000), -torch.inf)
    log_probs[:, :, [0, 255, 256, 2999]] = torch.tensor([0.25]).log()
    assert set(everywhere(log_probs, Streams(0, torch.arange(300))).flatten().tolist()) == {0, 255, 256, 2999}


def test_impossible_symbols_are_never_drawn() -> None:
    log_probs = torch.tensor([0, 1e-30, 1, 0]).log().expand(5000, 6, 4)
    assert (everywhere(log_probs, Streams(0, torch.arange(5000))) == 2).all()


def test_likeliest_is_the_first_of_equals() -> None:
    log_probs = torch.tensor([[[0.2, 0.4, 0.4], [0.5, 0.3, 0.2], [0, 0, 1]]]).log()
    assert everywhere(log_probs, Streams(0, torch.arange(1)), greedy=True).tolist() == [[1, 0, 2]]
