import math
from pathlib import Path

import pytest
import torch

import pairmi
from pairmi import api
from pairmi.backbones.tabular import Tabular
from pairmi.counting import Counting
from pairmi.loading import load
from pairmi.model import Model
from pairmi.selectors.eb import EB
from pairmi.tasks.tables import permutations
from pairmi.types import Backbone, PairmiError, Prediction, Tokens, Vocab
from worlds import Fixed, tabular

SUDOKU = load("sudoku4")
WORLD = tabular(permutations(3))
AGREEING = Tabular(torch.tensor([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]]), torch.ones(4).double(), ("h", "t"))


class AnyLength:
    """A backbone that takes every length, whose positions are coins that lean to the left neighbour's side."""

    vocab, length = Vocab(("a", "b")), None

    def __call__(self, tokens: Tokens) -> Prediction:
        lean = 0.5 + 0.3 * (tokens.roll(1, 1) == 0) - 0.3 * (tokens.roll(1, 1) == 1)
        p = torch.stack([lean, 1 - lean], 2).double()
        return Prediction(tokens, p.log(), p)


def test_the_package_offers_four_names_and_no_others() -> None:
    assert pairmi.decode is api.decode
    assert pairmi.mutual_information is api.mutual_information
    assert pairmi.load is load
    assert issubclass(pairmi.PairmiError, ValueError)
    with pytest.raises(AttributeError, match="module 'pairmi' has no attribute 'solve'"):
        pairmi.solve  # noqa: B018


def test_a_string_gives_one_result_a_list_a_list_in_order() -> None:
    one = pairmi.decode(SUDOKU, "1234" + "." * 12)
    assert one.text.startswith("1234")
    assert SUDOKU.task.conflict(one.tokens) is None
    several = pairmi.decode(SUDOKU, ["1234" + "." * 12, "." * 12 + "4321"])
    assert several[0].text == one.text
    assert several[1].text.endswith("4321")
    assert len(pairmi.decode(SUDOKU, ["." * 16])) == 1


def test_tensors_work_like_strings() -> None:
    tokens = SUDOKU.vocab.encode("1234" + "." * 12)
    assert pairmi.decode(SUDOKU, tokens).text == pairmi.decode(SUDOKU, "1234" + "_" * 12).text
    rows = pairmi.decode(SUDOKU, tokens[None])
    assert [row.text for row in rows] == [pairmi.decode(SUDOKU, tokens).text]


def test_lengths_may_differ() -> None:
    texts = ["a..", ".....b", "..", "b.."]
    together = pairmi.decode(AnyLength(), texts, "top-k:k=2", seed=3, batch_size=2)
    assert [len(out.text) for out in together] == [3, 6, 2, 3]
    for number, text in enumerate(texts):
        assert pairmi.decode(AnyLength(), [text], "top-k:k=2", seed=3, index=[number])[0].text == together[number].text


def test_steps_tell_what_was_filled_and_why_the_others_waited() -> None:
    out = pairmi.decode(SUDOKU, "." * 16, "independent-set", steps=True)
    assert out.passes == len(out.steps)
    assert sorted(i for step in out.steps for i in step.filled) == list(range(16))
    first = out.steps[0]
    assert set(first.waiting) == set(range(16)) - set(first.filled)
    assert any(why.startswith("depends on r1c1 by 0.") and why.endswith(" nats") for why in first.waiting.values())
    assert out.steps[-1].text == out.text
    assert out.steps[-1].waiting == {}
    assert pairmi.decode(SUDOKU, "." * 16).steps == ()


@pytest.mark.parametrize(
    ("spec", "verify", "words"),
    [
        ("top-k:k=2", False, "enough others came first"),
        ("threshold", False, "too uncertain (0.75: nats of entropy or 1 - confidence, as the rule judges)"),
        ("eb", False, "the budget is used up (it needs 1.39 nats)"),
        ("top-k:k=16", True, "its draft was not accepted"),
        ("independent-set:threshold=0", False, "depends on r1c1 by 0.288 nats"),
    ],
)
def test_reasons_are_words(spec: str, verify: bool, words: str) -> None:
    out = pairmi.decode(SUDOKU, "." * 16, spec, verify=verify, steps=True)
    assert words in {why for step in out.steps for why in step.waiting.values()}


@pytest.mark.parametrize("model", [AGREEING, Model(AGREEING)], ids=["bare", "wrapped"])
def test_a_position_that_people_know_by_a_number_is_given_with_its_index(model: Backbone) -> None:
    """Once {1: "depends on 1 by 0.693 nats"} was said of index 0, and 0 of it where the model was bare."""
    first = pairmi.decode(model, "...", "mi-bound:budget=0", steps=True).steps[0]
    assert set(first.filled) == {0, 2}
    assert first.waiting == {1: "depends on 1 by 0.693 nats (index 0)"}


def test_what_a_position_needs_is_its_charge_and_not_its_entropy() -> None:
    """Once "it needs 0.69 nats" was said of a charge of 0.069."""
    model = Model(Fixed(torch.full((3, 2), 0.5).log(), 2))
    words = pairmi.decode(model, "...", "mi-bound:mi=random,penalty=0,budget=0.05,entropy_weight=0.1", steps=True).steps[0].waiting
    assert set(words.values()) == {"the budget is used up (it needs 0.0693 nats)"}
    guided = pairmi.decode(model, "...", "mi-guided:mi=random,penalty=0,budget=1", steps=True).steps[0].waiting
    assert set(guided.values()) == {"the budget is used up (it needs 0.693 nats)"}
    assert list(pairmi.decode(model, "...", "eb:budget=0.7", steps=True).steps[0].waiting.values()) == [
        "the budget is used up (it needs 1.39 nats)"
    ]


def test_a_rule_may_be_an_object_and_options_are_handed_on() -> None:
    assert pairmi.decode(WORLD, "...", EB(0.0)).passes == 3
    greedy = pairmi.decode(WORLD, "...", "top-k:k=3", greedy=True)
    assert greedy.text == "111"
    sure = pairmi.decode(WORLD, "...", "top-k:k=3", greedy=True, verify=True, accept=0.5)
    assert sorted(sure.text) == ["1", "2", "3"]
    hot, cold = (pairmi.decode(WORLD, ["1.."] * 50, "top-k:k=3", temperature=t) for t in (1.0, 0.1))
    assert {out.text for out in hot} == {"122", "133", "123", "132"} == {out.text for out in cold}  # two equal symbols at any temperature
    seeds = [pairmi.decode(SUDOKU, "." * 16, seed=seed).text for seed in range(4)]
    assert len(set(seeds)) == 4


def test_mutual_information_of_one_and_of_many() -> None:
    one = pairmi.mutual_information(SUDOKU, "1" + "." * 15, floor=0.0)
    truth = SUDOKU.backbone.mutual_information(SUDOKU.vocab.encode("1" + "." * 15)[None])[0]
    torch.testing.assert_close(one.matrix, truth)
    assert one.bound.max() == 0
    assert one.rows == 1 + int((SUDOKU(SUDOKU.vocab.encode("1" + "." * 15)[None]).log_probs[0, 1:] > -math.inf).sum())
    assert max(one.asymmetry, one.inconsistency) < 1e-12
    torch.testing.assert_close(one.entropies[5], torch.tensor(math.log(3)).double())
    several = pairmi.mutual_information(SUDOKU, ["1" + "." * 15, "." * 16])
    assert len(several) == 2
    assert (several[0].matrix - truth).abs().max() <= several[0].bound.max() + 1e-12
    assert isinstance(pairmi.mutual_information(SUDOKU, SUDOKU.vocab.encode("." * 16)), api.MI)


def test_the_strongest_pairs() -> None:
    found = pairmi.mutual_information(WORLD, "...")
    pairs = found.strongest(2)
    assert len(pairs) == 2
    assert all(i < j and nats == pytest.approx(math.log(3) - math.log(2)) for i, j, nats in pairs)
    assert pairmi.mutual_information(WORLD, "12.").strongest() == []


@pytest.mark.parametrize(
    ("canvas", "message"),
    [
        ("12..", "canvas: expected 16 positions, got 4"),
        ("", "canvas: empty; expected 16 positions"),
        ("1" + "." * 14 + "x", r"canvas: 'x' at position 16 is not in the alphabet \(1234; unknown: . _\)"),
        ("1234341221434321", "canvas: every position is given, nothing is unknown; mark unknown positions with '.', or with token id 4"),
        ("11" + "." * 14, "canvas: contradiction: no sequence of this world fits the given positions"),
        ([], "canvases: expected at least one, got none"),
        (["." * 16, "12"], "canvas 1: expected 16 positions, got 2"),
        (["." * 16, "x2"], r"canvas 1: 'x' at position 1 is not in the alphabet \(1234; unknown: . _\)"),
        (torch.full((0, 16), 4), "canvases: expected at least one, got none"),
        (torch.full((16,), 4.0), r"canvas: expected a string or a vector of token ids, got \[16\] of torch.float32"),
        (torch.full((1, 1, 16), 4), r"canvas 0: expected a string or a vector of token ids, got \[1, 16\] of torch.int64"),
        (torch.full((16,), 5), r"canvas: token ids must be 0..4 \(4 = unknown\), got 5..5"),
        (torch.tensor([-1] + [4] * 15), r"canvas: token ids must be 0..4 \(4 = unknown\), got -1..4"),
    ],
)
def test_a_bad_canvas_is_refused_in_one_line(canvas: object, message: str, unchecked: None) -> None:
    for work in (pairmi.decode, pairmi.mutual_information):
        with pytest.raises(PairmiError, match=f"^{message}$"):
            work(SUDOKU, canvas)


def test_an_empty_canvas_of_a_backbone_of_any_length() -> None:
    with pytest.raises(PairmiError, match=r"^canvas: empty; expected at least one position$"):
        pairmi.decode(AnyLength(), "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "decode: batch_size must be >= 1, got 0"),
        ({"temperature": 0.0}, "temperature=0.0: must be a number above 0; for the likeliest symbol use greedy"),
        ({"temperature": -1.0}, "temperature=-1.0: must be a number above 0"),
        ({"accept": 1.5}, "accept=1.5: must be a probability between 0 and 1"),
        ({"rule": "mi-gided"}, r"rule 'mi-gided' is unknown; did you mean 'mi-guided'\?"),
    ],
)
def test_a_bad_option_is_refused_in_one_line(options: dict[str, object], message: str) -> None:
    with pytest.raises(PairmiError, match=f"^{message}"):
        pairmi.decode(SUDOKU, "." * 16, **options)


def test_mutual_information_refuses_a_batch_of_nothing_and_a_negative_floor() -> None:
    with pytest.raises(PairmiError, match=r"floor must be >= 0 nats and batch_rows >= 1"):
        pairmi.mutual_information(SUDOKU, "." * 16, batch_size=0)
    with pytest.raises(PairmiError, match=r"floor must be >= 0 nats and batch_rows >= 1"):
        pairmi.mutual_information(SUDOKU, "." * 16, floor=-1.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, 2.0])
def test_a_backbone_that_returns_no_probabilities_is_named(value: float) -> None:
    broken = Fixed(torch.full((3, 2), value), 2)
    for work in (pairmi.decode, pairmi.mutual_information):
        with pytest.raises(PairmiError, match=r"log-probabilities of row 0, position 0 sum to .* never logits"):
            work(broken, "...")


def test_what_a_user_counts_is_what_was_reported() -> None:
    meter = Counting(Model(WORLD))
    assert isinstance(meter, Backbone)
    out = pairmi.decode(meter, ["..."] * 4, "top-k:k=2", verify=True)
    assert meter.rows == sum(one.rows for one in out)


def test_a_block_is_exported_by_positions_of_the_canvas(tmp_path: Path) -> None:
    found = pairmi.mutual_information(load("markov"), "1.2.1.", block=3, floor=0.0)
    assert found.positions == (1, 3, 5)
    m = found.matrix.tolist()
    expected = {(1, 3): m[0][1], (1, 5): m[0][2], (3, 5): m[1][2]}
    strongest = max(expected, key=lambda pair: expected[pair])
    assert found.strongest(1) == [(*strongest, expected[strongest])]
    table, graph = found.to_dataframe(), found.to_networkx(-1.0)
    assert {(i, j) for i, j in zip(table["i"], table["j"], strict=True)} == {*expected}
    assert {(i, j): data["weight"] for i, j, data in graph.edges(data=True)} == pytest.approx(expected)
    assert found.to_numpy().shape == (3, 3)
    found.save(tmp_path / "pairs.csv")
    assert {tuple(map(int, line.split(",")[:2])) for line in (tmp_path / "pairs.csv").read_text().splitlines()[1:]} == {*expected}
    sudoku = pairmi.mutual_information(load("sudoku4"), "1234" + 12 * ".", block=4)
    assert sudoku.to_dataframe()["name_i"][0] == "r2c1"


def test_a_head_takes_nothing_that_is_for_probing() -> None:
    with pytest.raises(PairmiError, match=r"^mutual_information: head='sudoku' estimates from one pass; form, draws are for probing"):
        pairmi.mutual_information(load("sudoku"), 81 * ".", head="sudoku", form="tv", draws=3)
