import pickle
from pathlib import Path

import pytest
import torch
import transformers
from transformers import EsmcForMaskedLM, EsmcTokenizer

from foreign import made
from pairmi.backbones.esmc import RESIDUES, TRANSLATION
from pairmi.cli import main
from pairmi.loading import load

TOKENIZER = EsmcTokenizer()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return made("esmc", tmp_path_factory.mktemp("esmc"))


def test_the_ids_are_those_of_its_tokenizer() -> None:
    assert dict(TRANSLATION.ids) == {residue: TOKENIZER.convert_tokens_to_ids(residue) for residue in RESIDUES}
    assert sorted(RESIDUES) == list("ACDEFGHIKLMNPQRSTVWY")
    assert TRANSLATION.mask == TOKENIZER.mask_token_id == 32
    assert (TRANSLATION.before, TRANSLATION.after) == ((TOKENIZER.cls_token_id,), (TOKENIZER.eos_token_id,)) == ((0,), (2,))
    text = "MKV..LAGC"
    tokens = TRANSLATION.vocab.encode(text)[None]
    assert TRANSLATION.inputs(tokens)[0].tolist() == TOKENIZER(text.replace(".", "<mask>"))["input_ids"]
    assert TRANSLATION.vocab.decode(tokens[0]) == text


def test_it_says_what_transformers_says_of_the_same_text(folder: str) -> None:
    text = "MKV.LAWC..Y"
    raw = EsmcForMaskedLM.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.no_grad():
        out = raw(**TOKENIZER(text.replace(".", "<mask>"), return_tensors="pt"), output_hidden_states=True, output_attentions=True)
    assert out.logits.shape[-1] == 64
    assert len(TOKENIZER) == 33
    assert len(out.hidden_states) == 4
    model = load(folder, attention=True)
    prediction = model(model.vocab.encode(text)[None])
    torch.testing.assert_close(prediction.log_probs, out.logits[:, 1:-1, 4:24].log_softmax(-1), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(prediction.hidden, out.hidden_states[-1][:, 1:-1], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(prediction.attention, torch.stack(out.attentions).mean((0, 2))[:, 1:-1, 1:-1])


def test_its_last_hidden_states_are_what_it_predicts_from(folder: str) -> None:
    model = load(folder)
    prediction = model(torch.full((1, 5), 20))
    with torch.no_grad():
        logits = model.backbone.network.lm_head(prediction.hidden)
    torch.testing.assert_close(logits[:, :, 4:24].log_softmax(-1), prediction.log_probs, atol=1e-5, rtol=1e-5)


def test_the_folder_needs_no_tokenizer(folder: str) -> None:
    assert not [file.name for file in Path(folder).iterdir() if "token" in file.name or "vocab" in file.name]
    assert load(folder).vocab.symbols == tuple(RESIDUES)


def test_from_the_command_line(folder: str, capsys: pytest.CaptureFixture) -> None:
    assert main(["mi", "--backbone", folder, "--canvas", "MK..V.A", "--top", "2"]) == 0
    assert "nats" in capsys.readouterr().out
    assert main(["decode", "--backbone", folder, "--canvas", "MK..V.A", "--rule", "mi-bound"]) == 0
    assert capsys.readouterr().out.startswith("MK")
    assert main(["decode", "--backbone", folder, "--canvas", "M" + 63 * "."]) == 2
    assert "64 positions are too many for this model; at most 62" in capsys.readouterr().err


def test_it_travels_to_other_processes_also_when_it_was_used(folder: str) -> None:
    model = load(folder, attention=True, layer=1)
    tokens = model.vocab.encode("MK.LAW")[None]
    here, there = model(tokens), pickle.loads(pickle.dumps(model))(tokens)
    assert all(torch.equal(one, other) for one, other in zip(here.tensors(), there.tensors(), strict=True))
    assert model.backbone.reporting([0, 2]).network is model.backbone.network


def test_the_weights_are_of_the_revision_that_was_asked_for(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, real = list[object](), transformers.AutoModelForMaskedLM.from_pretrained

    def recorded(source: str, **options: object) -> object:
        asked.append(options["revision"])
        return real(source, **options)

    monkeypatch.setattr(transformers.AutoModelForMaskedLM, "from_pretrained", recorded)
    load(folder, revision="0" * 40)
    assert asked == ["0" * 40]
