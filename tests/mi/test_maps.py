"""Maps against exact worlds: by each way, what is known of the joint is what is found."""

import pytest
import torch

from pairmi.backbones.tabular import Tabular
from pairmi.counting import Counting
from pairmi.info import apc
from pairmi.mi.maps import Way, dealt, masking_information
from pairmi.types import PairmiError
from worlds import generator


def table(seed: int = 5, length: int = 4, size: int = 3) -> Tabular:
    """A random joint over all sequences."""
    support = torch.cartesian_prod(*[torch.arange(size)] * length)
    return Tabular(support, torch.rand(len(support), generator=generator(seed)).square() + 0.01, tuple("abcdefgh"[:size]))


def product_of_pairs() -> Tabular:
    """Positions 0 and 2 depend on each other, and 1 and 3; nothing else does."""
    support = torch.cartesian_prod(*[torch.arange(3)] * 4)
    links = torch.rand(2, 3, 3, generator=generator(2), dtype=torch.float64).square() + 0.02
    return Tabular(support, links[0, support[:, 0], support[:, 2]] * links[1, support[:, 1], support[:, 3]], tuple("abc"))


@pytest.mark.parametrize("by", ["mi", "substitution", "masking"])  # the Jacobian needs beliefs about known positions: test_jacobian.py
@pytest.mark.parametrize("symmetrise", ["mean", "max", "none"])
def test_every_way_finds_what_is_linked_and_nothing_else(by: str, symmetrise: str) -> None:
    found, rows = Way(by, symmetrise=symmetrise, floor=0.0).measure(product_of_pairs(), torch.tensor([0, 1, 2, 0]))
    linked = torch.zeros(4, 4, dtype=torch.bool)
    linked[[0, 2, 1, 3], [2, 0, 3, 1]] = True
    assert found[linked].min() > 1e-3
    assert found[~linked].abs().max() < 1e-9
    assert rows > 0
    assert torch.equal(found, found.t()) or symmetrise == "none"


@pytest.mark.parametrize("blocks", [2, 3, 4])
def test_substitution_by_its_definition(blocks: int) -> None:
    """Of the exact joint, pair by pair, with the masked block that the deal gives."""
    world, sequence = table(), torch.tensor([2, 0, 1, 1])
    found, rows = Way("substitution", symmetrise="none", blocks=blocks).measure(world, sequence)
    assert rows == blocks * 4 * 3
    block = dealt(4, blocks, generator(0))
    for i in range(4):
        for j in set(range(4)) - {i}:
            canvas, beliefs = sequence.masked_fill(block == block[j], 3), []
            for symbol in range(3):
                canvas[i] = symbol
                p = world(canvas[None]).log_probs[0, j].exp()
                beliefs.append((p / (1 - p)).log())
            changes = torch.stack(beliefs) - beliefs[sequence[i]]
            assert found[i, j] == pytest.approx(float(changes.abs().max()))


@pytest.mark.parametrize("blocks", [2, 4])
def test_masking_is_what_a_symbol_tells_and_its_mean_is_the_mutual_information(blocks: int) -> None:
    world, sequence = table(), torch.tensor([2, 0, 1, 1])
    block = dealt(4, blocks, generator(0))
    for i, j in torch.combinations(torch.arange(4)).tolist():
        canvas = sequence.masked_fill(block == block[j], 3)
        canvas[i] = canvas[j] = 3
        truth = world.mutual_information(canvas[None])[0, i, j]
        weights, told = world(canvas[None]).log_probs[0, i].exp(), []
        for symbol in range(3):
            here = sequence.clone()
            here[i] = symbol
            matrix, rows = Way("masking", symmetrise="none", blocks=blocks).measure(world, here)
            told.append(matrix[i, j])
            assert rows == blocks * 5
        torch.testing.assert_close((weights * torch.stack(told)).sum(), truth)


def test_masking_from_some_positions_to_others() -> None:
    world, sequence = table(), torch.tensor([2, 0, 1, 1])
    sources, targets = torch.tensor([True, True, False, False]), torch.tensor([False, False, True, True])
    meter = Counting(world)
    some = masking_information(meter, sequence, 2, sources=sources, targets=targets)
    whole = masking_information(Counting(world), sequence, 4)  # every target alone, as two blocks of two targets are
    expected = torch.zeros(4, 4, dtype=torch.float64)
    expected[:2, 2:] = whole[:2, 2:]
    torch.testing.assert_close(some, expected)
    assert meter.rows == 2 * 3


def test_mi_is_symmetrised_as_asked_and_corrected_as_asked() -> None:
    world, sequence = table(), torch.tensor([2, 0, 1, 1])
    raw = Way("masking", symmetrise="none").measure(world, sequence)[0]
    mean, largest = (Way("masking", symmetrise=how).measure(world, sequence)[0] for how in ("mean", "max"))
    torch.testing.assert_close(mean, 0.5 * (raw + raw.t()))
    torch.testing.assert_close(largest, torch.maximum(raw, raw.t()))
    torch.testing.assert_close(Way("masking", apc=True).measure(world, sequence)[0], apc(mean))


def test_no_number_depends_on_the_size_of_batches() -> None:
    world, sequence = table(), torch.tensor([2, 0, 1, 1])
    for by in ("mi", "jacobian", "substitution", "masking"):
        one, many = (Way(by, batch_rows=rows).measure(world, sequence)[0] for rows in (1, 256))
        assert torch.equal(one, many)


def test_few_symbols_are_the_likeliest_or_drawn_ones() -> None:
    world, sequence = table(size=5, length=3), torch.tensor([4, 0, 2])
    meter = Counting(world)
    likely = Way("jacobian", symbols=3).symbols_of(meter, sequence)
    assert meter.rows == 3
    for i in range(3):
        p = world(sequence.clone().index_fill_(0, torch.tensor(i), 5)[None]).log_probs[0, i]
        p[sequence[i]] = torch.inf
        assert likely[i].tolist() == p.topk(3).indices.tolist()
    drawn = [Way("jacobian", symbols=3, drawn=True, seed=seed).symbols_of(meter, sequence) for seed in range(40)]
    assert all(torch.equal(some[:, 0], sequence) and all(len(set(row)) == 3 for row in some.tolist()) for some in drawn)
    assert len({tuple(some.flatten().tolist()) for some in drawn}) > 5
    every = Way("jacobian").symbols_of(meter, sequence)
    assert [sorted(row) for row in every.tolist()] == [list(range(5))] * 3
    assert Way("substitution", symbols=2).measure(world, sequence)[1] == 3 + 3 * 3 * 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"by": "guess"}, r"map\(by='guess'\): expected one of mi, jacobian, substitution, masking"),
        ({"symmetrise": "min"}, r"map\(symmetrise='min'\): expected one of mean, max, none"),
        ({"symbols": 1}, r"map\(symbols=1\): at least 2, the one in the sequence and another"),
        ({"blocks": 1}, r"map\(blocks=1, deals=2\): at least two blocks"),
        ({"floor": -1.0}, r"Probe\(floor=-1.0, batch_rows=256\)"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_options_are_refused(options: dict, said: str) -> None:
    with pytest.raises(PairmiError, match=said):
        Way(**options)


def few_of(length: int) -> Tabular:
    support = torch.randint(3, (20, length), generator=generator(0)).unique(dim=0)
    return Tabular(support, torch.ones(len(support)).double(), tuple("abc"))


def test_masking_is_evaluated_a_few_rows_at_a_time() -> None:
    world, seen = few_of(6), list[int]()

    class Watching:
        vocab, length = world.vocab, world.length

        def __call__(self, tokens: torch.Tensor) -> object:
            seen.append(len(tokens))
            return world(tokens)

    sequence = world.support[0]
    whole, pieces = (Way("masking", batch_rows=size).measure(Watching(), sequence)[0] for size in (256, 2))
    assert torch.equal(whole, pieces)
    assert max(seen) > 2 >= min(seen)
    assert seen.count(2) > 8


@pytest.mark.parametrize("by", ["mi", "jacobian", "substitution", "masking"])
def test_one_symbol_tells_nothing(by: str) -> None:
    world = Tabular(torch.zeros(1, 4, dtype=torch.long), torch.ones(1).double(), ("a",))
    assert not Way(by).measure(world, torch.zeros(4, dtype=torch.long))[0].any()


def test_blocks_of_nobody_cost_nothing() -> None:
    world = few_of(4)
    few, many = (Way("mi", blocks=blocks, floor=0.0).measure(world, world.support[0]) for blocks in (4, 100))
    assert many[1] <= 1.5 * few[1]
    alone = Tabular(torch.arange(3)[:, None], torch.ones(3).double(), tuple("abc"))
    assert Way("mi").measure(alone, torch.zeros(1, dtype=torch.long))[1] == 0
