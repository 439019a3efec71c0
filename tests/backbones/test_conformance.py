"""What holds for every backbone, our own and foreign ones."""

from pathlib import Path

import pytest
import torch

import pairmi
from foreign import MAKERS, made
from pairmi.backbones.tabular import Tabular
from pairmi.backbones.transformer import TransformerConfig
from pairmi.counting import Counting
from pairmi.loading import load
from pairmi.model import Model
from pairmi.types import Backbone, PairmiError, Tokens
from rules import opinionated
from structures import cut
from worlds import generator

OURS = ("tabular", "transformer", "proteinmpnn")
LENGTHS = (1, 2, 3, 7, 22)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name in MAKERS:
        made(name, folder)
    return folder


@pytest.fixture(scope="module", params=[*OURS, *MAKERS])
def model(request: pytest.FixtureRequest, home: Path) -> Model:
    if request.param == "tabular":
        return load("sudoku4")
    if request.param == "transformer":
        return opinionated(TransformerConfig(symbols="abcde", length=12, width=16, depth=2, heads=2))
    if request.param == "proteinmpnn":
        return load("proteinmpnn", structure=cut(home / "two.pdb", A=(53, 58), B=(80, 83)))
    return load(str(home / request.param))


@pytest.fixture(scope="module", params=[*MAKERS])
def attentive(request: pytest.FixtureRequest, home: Path) -> Model:
    return load(str(home / request.param), attention=True)


def canvases(model: Backbone, rows: int, length: int = 9, masked: float = 0.5) -> Tokens:
    rng, length = generator(rows), model.length or length
    given = torch.randint(model.vocab.size, (rows, length), generator=rng)
    return torch.where(torch.rand(rows, length, generator=rng) < masked, model.vocab.size, given)


def test_it_is_a_backbone(model: Model) -> None:
    assert isinstance(model.backbone, Backbone)
    assert len(set(model.vocab.symbols)) == model.vocab.size
    assert not set(model.vocab.blanks) & set(model.vocab.symbols)


@pytest.mark.parametrize("masked", [0.0, 0.5, 1.0])
def test_a_prediction_has_its_shapes_and_is_normalised(model: Model, masked: float) -> None:
    tokens = canvases(model, 4, masked=masked)
    prediction = Counting(model)(tokens)  # which refuses other shapes, NaN and what is not normalised
    assert torch.equal(prediction.tokens, tokens)
    assert prediction.hidden.shape[:2] == tokens.shape
    assert prediction.attention is None
    mass = prediction.log_probs.double().exp().sum(-1)
    torch.testing.assert_close(mass, torch.ones_like(mass), atol=1e-6, rtol=0)
    assert not prediction.log_probs.requires_grad
    assert not prediction.hidden.requires_grad


def test_what_is_given_matters(model: Model) -> None:
    tokens = canvases(model, 1, masked=1.0).repeat(2, 1)
    tokens[:, 0] = torch.tensor([0, 1])
    first, second = model(tokens).log_probs[:, 1]
    assert (first - second).abs().max() > 1e-3


@pytest.mark.parametrize("length", LENGTHS)
def test_the_bits_of_a_row_do_not_depend_on_its_batch(model: Model, length: int) -> None:
    tokens = canvases(model, 33, length)
    whole = model(tokens)
    for rows in (1, 2, 5, 32):
        part = model(tokens[:rows])
        assert torch.equal(part.log_probs, whole.log_probs[:rows])
        assert torch.equal(part.hidden, whole.hidden[:rows])
    assert torch.equal(model(tokens.flip(0)).log_probs, whole.log_probs.flip(0))


@pytest.mark.parametrize("length", LENGTHS)
def test_nor_do_they_with_attention(attentive: Model, length: int) -> None:
    tokens = canvases(attentive, 33, length)
    whole = attentive(tokens)
    for rows in (1, 2, 5, 32):
        part = attentive(tokens[:rows])
        assert torch.equal(part.log_probs, whole.log_probs[:rows])
        assert torch.equal(part.attention, whole.attention[:rows])


def test_attention_is_between_our_positions(attentive: Model) -> None:
    attention = attentive(canvases(attentive, 4, 9)).attention
    assert attention.shape == (4, 9, 9)
    assert (attention > 0).all()
    assert (attention.sum(-1) < 1).all()  # the rest goes to the special tokens
    assert attentive(canvases(attentive, 1, 9)).attention.shape == (1, 9, 9)


def test_mutual_information_and_decoding_run(model: Model) -> None:
    canvas = canvases(model, 1, 5, masked=1.0)[0]
    canvas[0] = 0
    found = pairmi.mutual_information(model, canvas, floor=0.0)
    assert found.matrix.shape == (len(canvas), len(canvas))
    assert float(found.matrix[1:, 1:].max()) > 1e-6
    assert float(found.matrix[0].max()) == 0
    assert found.rows == 1 + (len(canvas) - 1) * model.vocab.size or isinstance(model.backbone, Tabular)
    for verify in (False, True):
        out = pairmi.decode(model, canvas, rule="mi-bound:budget=0.5", verify=verify)
        assert int(out.tokens.max()) < model.vocab.size
        assert int(out.tokens[0]) == 0
        assert out.passes <= 2 * len(canvas)


def test_decoding_is_the_same_at_every_batch_size(model: Model) -> None:
    several = list(canvases(model, 6, 5))
    if isinstance(model.backbone, Tabular):
        several = [canvas for canvas in canvases(model, 12, masked=0.9) if model.task.conflict(canvas) is None]
    several = [canvas for canvas in several if (canvas == model.vocab.size).any()]
    whole, alone = (pairmi.decode(model, several, rule="eb:budget=0.5", batch_size=size) for size in (64, 1))
    assert [out.text for out in whole] == [out.text for out in alone]
    assert len(whole) > 3


def test_attention_serves_as_a_control(attentive: Model) -> None:
    out = pairmi.decode(attentive, canvases(attentive, 1, 6, masked=1.0)[0], rule="mi-bound:mi=attention")
    assert int(out.tokens.max()) < attentive.vocab.size


def test_lengths_are_any_or_the_one(model: Model) -> None:
    if model.length is None:
        for length in (3, 1, 6):
            assert len(pairmi.decode(model, canvases(model, 1, length, 1.0)[0], rule="top-k:k=2").tokens) == length
    else:
        with pytest.raises(PairmiError, match=rf"expected canvases of {model.length} positions, got 5"):
            model(torch.zeros(1, 5, dtype=torch.long))


@pytest.mark.parametrize(("name", "longest"), [("esmc", 62), ("esm2", 62), ("bert", 62)])
def test_the_longest_canvas_runs_and_a_longer_one_is_refused(home: Path, name: str, longest: int) -> None:
    model = load(str(home / name))
    assert model(canvases(model, 1, longest)).log_probs.shape[1] == longest
    with pytest.raises(PairmiError, match=rf"MaskedLM: a canvas of {longest + 1} positions is too long for this model; at most {longest} "):
        model(canvases(model, 1, longest + 1))
