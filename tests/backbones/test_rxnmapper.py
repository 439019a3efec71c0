"""RXNMapper: its weights from the package `rxnmapper`, and SMILES as text over symbols of several letters."""

from pathlib import Path

import pytest
import torch

import pairmi
from pairmi.backbones import packaged
from pairmi.backbones.masked_lm import Settings
from pairmi.cli import main
from pairmi.loading import load
from pairmi.model import Model
from pairmi.types import PairmiError, Vocab

ESTER = "CC(=O)O.CCO>>CC(=O)OCC"


@pytest.fixture(scope="module")
def model() -> Model:
    return load("rxnmapper", device="cpu")


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("CCl.Br", ["C", "Cl", ".", "Br"]),
        ("[C@@H](N)>>c1ccccc%12", ["[C@@H]", "(", "N", ")", ">>", "c", "1", "c", "c", "c", "c", "c", "%12"]),
        ("C[MASK]_=O", ["C", "_", "_", "=", "O"]),
        ("C☃", ["C", "☃"]),
    ],
)
def test_smiles_are_cut_whole(text: str, symbols: list[str]) -> None:
    smiles = packaged.Smiles()
    assert smiles.encode(text) == symbols
    assert smiles.decode(symbols) == text.replace("_", "[MASK]")


def test_text_goes_in_and_comes_out(model: Model) -> None:
    tokens = model.vocab.encode("CC(=O)Cl.[MASK]CO>>CC(=O)O_C")
    assert (tokens == model.vocab.size).nonzero()[:, 0].tolist() == [8, 19]
    assert model.vocab.decode(tokens) == "CC(=O)Cl.[MASK]CO>>CC(=O)O[MASK]C"
    assert model.vocab.size == 576
    assert model.longest == 510


def test_it_knows_the_grammar_and_the_chemistry(model: Model) -> None:
    out = pairmi.decode(model, "CC(=O)O.CCO>>CC(=O)[MASK]CC", rule="sequential", greedy=True)
    assert out.text == ESTER
    out = pairmi.decode(model, "c1ccccc1Br.OB(O)c1ccccc1>>c1ccc(-c2cc_cc2)cc1", rule="sequential", greedy=True)
    assert out.text.endswith(">>c1ccc(-c2ccccc2)cc1")


def test_the_bits_of_a_row_do_not_depend_on_its_batch(model: Model) -> None:
    rows = model.vocab.encode(ESTER).repeat(5, 1)
    rows[torch.arange(5), torch.arange(5)] = model.vocab.size
    together = model(rows).log_probs
    for n in range(5):
        assert torch.equal(model(rows[n : n + 1]).log_probs[0], together[n])


def test_an_ester_has_its_alcohol_from_the_alcohol(model: Model) -> None:
    """Each carbon of the ethyl group of the product depends on one of ethanol more than on those of acetic acid."""
    found = pairmi.map(model, ESTER, by="masking", blocks=22, symmetrise="none")
    product = [n for n, symbol in enumerate(found.symbols) if symbol == "C"][-2:]
    ethanol, acid = [8, 9], [0, 1]
    assert found.matrix[ethanol][:, product].max() > found.matrix[acid][:, product].max()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[CH3:1][OH:2]>>[CH3:1]Cl", "canvas: ':1]' at letter 5 is an atom map, which the model does not read; strip the maps"),
        ("CCO", "canvas: expected reactants>>products, got 0 times '>>'; put reagents among the reactants"),
        ("CC☃>>CC", "canvas: '☃' at position 3 is not in the alphabet (576 symbols; unknown: [MASK])"),
        ("CC[Qq]>>CC", "canvas: '[Qq]' at position 3 is not in the alphabet (576 symbols; unknown: [MASK])"),
        ("C" * 600 + ">>C", "canvas: 602 positions are too many for this model; at most 510; cut the sequence"),
    ],
)
def test_what_does_not_tokenise_is_named(text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["map", "--backbone", "rxnmapper", "--sequence", text]) == 2
    assert capsys.readouterr().err == f"pairmi map: {said}\n"


def test_without_the_package_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(PairmiError, match=r"load: no file .*vocab.txt; .* pip install --no-deps rxnmapper==0.4.3"):
        packaged.load("rxnmapper", Settings(), tmp_path)
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nC\n")
    with pytest.raises(PairmiError, match=r"vocab.txt lacks >>; pip install --no-deps rxnmapper==0.4.3"):
        packaged.load("rxnmapper", Settings(), tmp_path)
    monkeypatch.setattr(packaged, "find_spec", lambda name: None)
    with pytest.raises(PairmiError, match=r"load: 'rxnmapper' needs the package that holds its weights; pip install --no-deps"):
        load("rxnmapper")


def test_symbols_of_several_letters_need_a_tokenizer() -> None:
    with pytest.raises(PairmiError, match=r"canvas: text is ambiguous over symbols of several letters such as 'Cl'"):
        Vocab(("C", "Cl")).encode("CCl")
    assert Vocab(("C", "Cl")).decode(torch.tensor([0, 1, 2])) == "C Cl ."
