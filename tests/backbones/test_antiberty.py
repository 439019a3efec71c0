"""The weights that the package `antiberty` carries, and what happens where they are not as they should be."""

from pathlib import Path

import pytest
import torch

import pairmi
from foreign import antiberty as fabricate
from pairmi.backbones import packaged
from pairmi.backbones.masked_lm import Settings
from pairmi.loading import load
from pairmi.model import Model
from pairmi.types import PairmiError

HEAVY = "EVQLVQSGPEVKKPGTSVKVSCKASGFTFMSSAVQWVRQARGQRLEWIGWIVIGSGNTNYAQKFQERVTITRDMSTSTAYMELSSLRSEDTAVYYCAAPYCSSISCNDGFDIWGQGTMVTVSS"


@pytest.fixture(scope="module")
def model() -> Model:
    return load("antiberty")


def blanked(*positions: int) -> str:
    return "".join("." if i in positions else residue for i, residue in enumerate(HEAVY))


def test_it_knows_what_an_antibody_needs(model: Model) -> None:
    assert "".join(model.vocab.symbols) == "ACDEFGHIKLMNPQRSTVWY"
    assert model.backbone.longest == 510
    conserved = (21, 35, 95, 112)  # the two cysteines of the disulfide bridge, the core tryptophan, the W of the WGQG motif
    assert "".join(HEAVY[i] for i in conserved) == "CWCW"
    sure = model(model.vocab.encode(blanked(*conserved))[None]).log_probs[0].exp()
    for i in conserved:
        assert sure[i, model.vocab.symbols.index(HEAVY[i])] > 0.9


def test_all_its_weights_are_in_place(model: Model) -> None:
    assert sum(parameter.numel() for parameter in model.backbone.parameters()) == pytest.approx(26e6, rel=0.03)
    hidden = model(model.vocab.encode(blanked(3))[None]).hidden
    assert hidden.shape == (1, len(HEAVY), 512)


def test_it_decodes_a_gap(model: Model) -> None:
    out = pairmi.decode(model, blanked(34, 35, 36), rule="eb:budget=0.5", greedy=True)
    assert out.text == HEAVY
    assert out.passes < 3


def test_heavy_and_light_chains_go_in_alike(model: Model) -> None:
    light = "DVVMTQTPFSLPVSLGDQASISCRSSQSLVHSNGNTYLHWYLQKPGQSPKLLIYKVSNRFSGVPDRFSGSGSGTDFTLKISRVEAEDLGVYFCSQSTHVPYTFGGGTKLEIK"
    canvas = light[:22] + "." + light[23:39] + "." + light[40:]
    sure = model(model.vocab.encode(canvas)[None]).log_probs[0].exp()
    assert light[22] == "C"
    assert sure[22, model.vocab.symbols.index("C")] > 0.9


def test_a_folder_of_the_same_layout_loads(tmp_path: Path) -> None:
    fabricate(tmp_path)
    tiny = packaged.load("antiberty", Settings(attention=True), tmp_path)
    prediction = tiny(torch.full((2, 7), 20))
    assert prediction.log_probs.shape == (2, 7, 20)
    assert prediction.attention.shape == (2, 7, 7)
    assert tiny.translation.inputs(torch.tensor([[0, 19, 20]])).tolist() == [[2, 5, 24, 4, 3]]
    assert tiny.longest == 62


def test_another_layout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        PairmiError, match=r"load: no file .*vocab\.txt; install the version that is known to work: pip install antiberty=="
    ):
        packaged.load("antiberty", Settings(), tmp_path)
    (tmp_path / "vocab.txt").write_text("[CLS] [SEP] A C")
    with pytest.raises(PairmiError, match=r"load: .*vocab\.txt lacks D; pip install antiberty==0\.1\.3"):
        packaged.load("antiberty", Settings(), tmp_path)
    fabricate(tmp_path)
    (tmp_path / "AntiBERTy_md_smooth" / "pytorch_model.bin").unlink()
    with pytest.raises(PairmiError, match=r"load: cannot read the folder .*AntiBERTy_md_smooth as a masked language model \(Error no file"):
        packaged.load("antiberty", Settings(), tmp_path)


def test_a_pickle_that_runs_code_is_not_run(tmp_path: Path) -> None:
    fabricate(tmp_path)
    torch.save({"cls": print}, tmp_path / "AntiBERTy_md_smooth" / "pytorch_model.bin")
    with pytest.raises(PairmiError, match="damaged or hold more than tensors"):
        packaged.load("antiberty", Settings(), tmp_path)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaged, "find_spec", lambda name: None)
    with pytest.raises(PairmiError, match=r"load: 'antiberty' needs the package that holds its weights; pip install 'pairmi\[antibody\]'"):
        load("antiberty")
