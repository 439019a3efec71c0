"""Whatever a user hands to the Python functions by mistake: accepted, or refused with one line that says what to do."""

import math
import re
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import pairmi
from pairmi.backbones.tabular import Tabular
from pairmi.loading import load
from pairmi.model import Model
from pairmi.tasks.tables import parity
from pairmi.types import PairmiError, Vocab
from worlds import Incoherent

MODEL = load("xor")
CANVASES: list[Any] = [
    None, 3, 2.5, True, b"...", {}, {"a": 1}, set(), object(), [], (), "", "   ", "....", "..", "..x", "111", "1 .", "222", "000",
    [0, 1, 9], [0, 1, -1], [0, 1, 2**70], [0.5, 1.0, 2.0], [[0, 1, 2]], [[0, 1]], [None], [["..."]], ["...", 3], ["...", None],
    ["..", "..."],
    [0, 0, 1], (1, 1, 2, 2), np.array([0, 1, 7]), np.array([0.0, 1.0, 2.0]), np.array(["a"]), np.zeros((2, 2, 2), int), np.array(2),
    np.zeros((0, 3), int), torch.tensor(2), torch.zeros(3), torch.zeros(2, 2, 2).long(), torch.tensor([0, 1, 3]),
    torch.tensor([True, False, True]),
    torch.zeros(0, 3).long(), torch.tensor([1 + 1j]), torch.tensor([0, 1]), torch.tensor([[0, 1, 0]]), "sudoku", iter(["..."]),
]  # fmt: skip
MODELS: list[Any] = [
    None,
    3,
    "sudoku",
    "no-such-model",
    object(),
    dict,
    torch.nn.Linear(2, 2),
    lambda tokens: tokens,
    Vocab(("a",)),
    [MODEL],
]
OPTIONS: list[dict[str, Any]] = [
    {"rule": [None]}, {"rule": 3}, {"rule": ""}, {"rule": "nope"}, {"rule": "eb:,=1"}, {"rule": "eb:budget"}, {"rule": "eb:budget="},
    {"rule": "eb:budget=x"}, {"rule": "eb:budget=-1"}, {"rule": "eb:budget=nan"}, {"rule": "eb:by=luck"}, {"rule": "top-k:k=0"},
    {"rule": "top-k:k=1.5"}, {"rule": "mi-bound:mi=head"}, {"rule": "mi-bound:mi=nope"}, {"rule": "mi-bound:mi=structural"},
    {"rule": "mi-bound:mi=attention"}, {"rule": "mi-bound:floor=-1"}, {"rule": "mi-bound:form=mean"},
    {"rule": "mi-bound:mi=random,floor=1"},
    {"rule": "mi-bound:order=luck"}, {"rule": "eb:commit=two"}, {"rule": "sequential:by=x"}, {"rule": "maskgit:steps=0"},
    {"rule": "klass:k=0"},
    {"rule": "eb:budget=1,budget=1"}, {"rule": object()}, {"rule": "mi-guided:penalty=-1"}, {"rule": "factor:factor=-1"},
    {"temperature": 0.0}, {"temperature": -1.0}, {"temperature": math.nan}, {"temperature": math.inf}, {"accept": -0.1}, {"accept": 2.0},
    {"accept": math.nan}, {"seed": -1}, {"seed": 2**64}, {"seed": 2**63}, {"seed": 1.5}, {"seed": "1"}, {"seed": None},
    {"batch_size": 0}, {"batch_size": -5}, {"index": [0, 1]},
    {"index": []},
]  # fmt: skip
PROBES: list[dict[str, Any]] = [
    {"form": "mean"}, {"draws": 0}, {"draws": 2, "form": "joint"}, {"error": 0.1}, {"draws": 2, "floor": 0.1},
    {"draws": 2, "error": math.nan}, {"floor": -1.0}, {"floor": math.nan}, {"batch_size": 0}, {"batch_size": -1},
    {"head": "nope"}, {"head": "sudoku"}, {"head": "/"},
]  # fmt: skip
NAMES: list[Any] = [
    None, 3, "", "nope", "sudoku5", "./nope", "a/b/c", "/", "/etc/passwd", "owner/model", b"sudoku", ["sudoku"], "sudoku.safetensors",
]  # fmt: skip
LOADING: list[dict[str, Any]] = [
    {"device": "nowhere"}, {"device": "cuda"}, {"head": "nope"}, {"head": "protein"}, {"layer": 99}, {"precision": "int3"},
]  # fmt: skip
VOCABS: list[tuple[Any, ...]] = [((),), (("a", "a"),), (("a", "."),), (("a",), ""), (("a", "b"), "b")]


def refused_or_done(work: Any, *arguments: Any, **options: Any) -> None:
    """Anything but a `PairmiError` fails the test by itself."""
    said = "nothing to complain of"
    try:
        work(*arguments, **options)
    except PairmiError as error:
        said = str(error)
    assert "\n" not in said
    assert len(said) > 10


@pytest.mark.parametrize("work", [pairmi.decode, pairmi.mutual_information], ids=["decode", "mi"])
@pytest.mark.parametrize("number", range(len(CANVASES)))
def test_strange_canvases(number: int, work: Any, unchecked: None) -> None:
    refused_or_done(work, MODEL, CANVASES[number])


@pytest.mark.parametrize("work", [pairmi.decode, pairmi.mutual_information], ids=["decode", "mi"])
@pytest.mark.parametrize("number", range(len(MODELS)))
def test_strange_models(number: int, work: Any, unchecked: None) -> None:
    model = MODELS[number]
    with pytest.raises(PairmiError, match=r"^model: expected a (loaded model|backbone)"):
        work(model, "...")


@pytest.mark.parametrize("number", range(len(OPTIONS)))
def test_strange_options(number: int, unchecked: None) -> None:
    with pytest.raises(PairmiError):
        pairmi.decode(MODEL, "...", **OPTIONS[number])


@pytest.mark.parametrize("options", PROBES, ids=str)
def test_strange_probes(options: dict[str, Any], unchecked: None) -> None:
    with pytest.raises(PairmiError):
        pairmi.mutual_information(MODEL, "...", **options)


@pytest.mark.parametrize("name", NAMES, ids=str)
def test_strange_names(name: Any, unchecked: None) -> None:
    with pytest.raises(PairmiError):
        load(name)


@pytest.mark.parametrize("options", LOADING, ids=str)
def test_strange_ways_to_load(options: dict[str, Any], unchecked: None) -> None:
    with pytest.raises(PairmiError):
        load("sudoku", **options)


@pytest.mark.parametrize("arguments", VOCABS, ids=str)
def test_strange_alphabets(arguments: tuple[Any, ...], unchecked: None) -> None:
    with pytest.raises(PairmiError, match=r"^Vocab: "):
        Vocab(*arguments)


class Coins:
    """A backbone as beginners write one: its alphabet is a tuple."""

    vocab, length = ("h", "t"), 3

    def __call__(self, tokens: torch.Tensor) -> None:
        """Never comes to it."""


class Network(torch.nn.Linear):
    """Stands in for one of transformers: it has a configuration."""

    config = object()


@pytest.mark.parametrize("work", [pairmi.decode, pairmi.mutual_information, partial(pairmi.price, rules="top-k"), pairmi.map])
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Coins(), r"Coins: expected vocab to be a Vocab, got tuple; pairmi.types.Vocab\(symbols\) makes one"),
        (Coins, r"model: expected a backbone, got the class Coins; give one of it: Coins\(...\)"),
        (Network(2, 2), r"model: .*, got Network; pairmi.generate\(model, tokenizer, .*\), or save_pretrained\(.*pairmi.load\(folder\)"),
        (torch.nn.Linear(2, 2), r"model: .*, got Linear"),
    ],
    ids=["tuple", "class", "network", "module"],
)
def test_models_that_are_nearly_one(model: Any, message: str, work: Any, unchecked: None) -> None:
    with pytest.raises(PairmiError, match=f"^{message}$"):
        work(model, "...")


def test_a_class_or_an_alphabet_inside_a_model_is_named_as_well(unchecked: None) -> None:
    with pytest.raises(PairmiError, match=r"^model: expected a backbone, got the class Coins; give one of it"):
        pairmi.decode(Model(Coins), "...")
    with pytest.raises(PairmiError, match=r"^Coins: expected vocab to be a Vocab, got tuple"):
        pairmi.decode(Model(Coins()), "...")


@pytest.mark.parametrize("seed", [1.5, np.int64(3), "1"])
def test_a_seed_is_a_whole_number(seed: Any, unchecked: None) -> None:
    with pytest.raises(PairmiError, match=f"^{re.escape(f'seed={seed!r}: must be a whole number (int) from 0 to 2^63 - 1')}$"):
        pairmi.decode(MODEL, "...", seed=seed)


@dataclass(frozen=True)
class Words:
    """Cuts text at spaces."""

    def encode(self, text: str) -> list[str]:
        return text.split()

    def decode(self, symbols: list[str]) -> str:
        return " ".join(symbols)


def test_words_of_an_alphabet_are_set_apart() -> None:
    with pytest.raises(PairmiError, match=r"^canvas: '<mask>' at position 2 is not in the alphabet \(the cat sat; unknown: \.\)$"):
        Vocab(("the", "cat", "sat"), tokenizer=Words()).encode("the <mask>")


def test_white_space_that_is_a_symbol_stays() -> None:
    world = parity(3)
    spaced = Tabular(world.support, world.weights, (" ", "x"))
    assert pairmi.decode(spaced, " x.").text == " xx"
    assert pairmi.decode(spaced, "\t x.\n").text == " xx"
    assert pairmi.decode(spaced, ".x ").text == "xx "
    with pytest.raises(PairmiError, match=r"^canvas: every position is given"):
        pairmi.decode(spaced, "   ")
    assert pairmi.decode(MODEL, " 1..\n").text[0] == "1"
    assert Vocab(("a",), " .").stripped(" a\n") == " a"


def test_ids_in_any_form_are_what_text_is() -> None:
    expected = pairmi.decode(MODEL, "1..").text
    for canvas in ([0, 2, 2], (0, 2, 2), np.array([0, 2, 2]), torch.tensor([0, 2, 2], dtype=torch.uint8)):
        assert pairmi.decode(MODEL, canvas).text == expected
    assert [one.text for one in pairmi.decode(MODEL, np.array([[0, 2, 2]]))] == [expected]


def test_what_is_shown_is_short() -> None:
    model = Model(Incoherent(30, 20, 0, 1.0))
    shown = [
        repr(x)
        for x in (
            MODEL,
            model,
            pairmi.decode(MODEL, "..."),
            pairmi.mutual_information(MODEL, "..."),
            MODEL(torch.full((2, 3), 2)),
            model.vocab,
        )
    ]
    assert all(len(text) < 160 and "tensor" not in text for text in shown), shown
    assert pairmi.decode.__doc__ is not None
    assert pairmi.__doc__ is not None


def test_at_least_150_calls() -> None:
    assert 2 * len(CANVASES) + 2 * len(MODELS) + len(OPTIONS) + len(PROBES) + len(NAMES) + len(LOADING) + len(VOCABS) >= 150
