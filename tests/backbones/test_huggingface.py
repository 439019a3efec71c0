import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import transformers
from huggingface_hub import constants
from transformers import AutoModelForMaskedLM, AutoTokenizer, EsmModel, GPT2Config, RobertaConfig, RobertaForMaskedLM

import pairmi
from foreign import ESM, ODD, made
from pairmi.backbones.huggingface import speaks_protein, translate
from pairmi.backbones.masked_lm import MaskedLM, Settings, chosen_device, usable_positions
from pairmi.backbones.pretrained import readable, reading
from pairmi.backbones.products import Rowwise
from pairmi.backbones.translation import RESIDUES, Translation
from pairmi.cli import main
from pairmi.loading import load
from pairmi.types import PairmiError


@pytest.fixture(scope="module")
def esm2(tmp_path_factory: pytest.TempPathFactory) -> str:
    return made("esm2", tmp_path_factory.mktemp("esm2"))


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return made("bert", tmp_path_factory.mktemp("bert"))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A folder with room for a configuration."""
    (tmp_path / "broken").mkdir()
    return tmp_path / "broken" / "config.json"


def test_an_esm2_says_what_transformers_says_of_the_same_text(esm2: str) -> None:
    model, text = load(esm2, attention=True, layer=1), "MKV.LAWC..Y"
    raw, tokenizer = AutoModelForMaskedLM.from_pretrained(esm2, attn_implementation="eager").eval(), AutoTokenizer.from_pretrained(esm2)
    ids = tokenizer(text.replace(".", "<mask>"), return_tensors="pt")
    with torch.no_grad():
        out = raw(**ids, output_hidden_states=True, output_attentions=True)
    columns = [ESM.index(residue) for residue in RESIDUES]
    prediction = model(model.vocab.encode(text)[None])
    assert torch.equal(model.backbone.translation.inputs(prediction.tokens), ids["input_ids"])
    torch.testing.assert_close(prediction.log_probs, out.logits[:, 1:-1, columns].log_softmax(-1), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(prediction.hidden, out.hidden_states[1][:, 1:-1])
    torch.testing.assert_close(prediction.attention, torch.stack(out.attentions).mean((0, 2))[:, 1:-1, 1:-1])


def test_an_odd_bert_says_what_transformers_says_of_the_same_tokens(bert: str) -> None:
    model, raw = load(bert), AutoModelForMaskedLM.from_pretrained(bert).eval()
    assert model.vocab.symbols == ("a", "##b", "the", ".", "x", "_")
    columns = [ODD.index(symbol) for symbol in model.vocab.symbols]
    tokens = torch.tensor([[0, 6, 2, 1, 6, 5]])
    ids = torch.tensor([[8, *[[*columns, 1][token] for token in tokens[0]], 6]])  # [CLS] ... [SEP]
    with torch.no_grad():
        out = raw(input_ids=ids, output_hidden_states=True)
    prediction = model(tokens)
    torch.testing.assert_close(prediction.log_probs, out.logits[:, 1:-1, columns].log_softmax(-1), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(prediction.hidden, out.hidden_states[-1][:, 1:-1])


@pytest.mark.parametrize("name", ["esm2", "bert", "esmc"])
def test_what_the_model_thinks_of_other_tokens_does_not_matter(tmp_path: Path, name: str) -> None:
    model = load(made(name, tmp_path))
    tokens = torch.full((2, 5), model.vocab.size)
    before = model(tokens).log_probs
    others = torch.ones(model.backbone.network.config.vocab_size)
    others[list(model.backbone.translation.ids.values())] = 0

    def shout(module: torch.nn.Module, inputs: object, out: transformers.modeling_outputs.MaskedLMOutput) -> None:
        out.logits = out.logits + 50 * others

    model.backbone.network.register_forward_hook(shout)
    assert torch.equal(model(tokens).log_probs, before)


def test_an_alphabet_of_words_is_read_and_written_by_its_tokenizer(bert: str) -> None:
    vocab = load(bert).vocab
    assert (vocab.blanks, vocab.blank) == ("□", "[MASK]")  # "." and "_" are symbols
    assert vocab.encode("the ab[MASK].").tolist() == [2, 0, 1, 6, 3]
    assert vocab.decode(torch.tensor([2, 0, 1, 6, 3])) == "the ab [MASK]."
    assert vocab.offsets(torch.tensor([2, 0, 1, 6, 3])) == [(0, 3), (3, 5), (5, 6), (6, 13), (13, 14)]


def test_an_alphabet_of_letters_takes_text(tmp_path: Path) -> None:
    vocab = load(made("letters", tmp_path)).vocab
    assert vocab.encode("a.□").tolist() == [0, 3, 5]
    assert vocab.decode(torch.tensor([0, 3, 5])) == "a.□"


def test_layers_count_from_both_ends_and_stand_side_by_side(esm2: str) -> None:
    tokens = torch.full((1, 4), 20)
    states = [load(esm2, layer=layer)(tokens).hidden for layer in range(4)]
    assert torch.equal(load(esm2)(tokens).hidden, states[-1])
    assert torch.equal(load(esm2, layer=-4)(tokens).hidden, states[0])
    several = load(esm2).backbone.reporting([0, 2])
    with torch.no_grad():
        assert torch.equal(several(tokens).hidden, torch.cat([states[0], states[2]], 2))
    with pytest.raises(PairmiError, match=r"MaskedLM: layers must be one or more of 0\.\.3, got \[4\]"):
        several.reporting([4])
    for wrong in (4, -5):
        with pytest.raises(PairmiError, match=rf"MaskedLM\(layer={wrong}\): the model has layers 0 \(its embedding\) to 3, or -1 to -4"):
            load(esm2, layer=wrong)


@pytest.mark.parametrize(("precision", "error"), [("bfloat16", 0.5), ("float16", 0.05)])
def test_half_precision_gives_whole_predictions(esm2: str, precision: str, error: float) -> None:
    tokens = torch.full((2, 6), 20)
    half, full = load(esm2, precision=precision)(tokens), load(esm2)(tokens)
    assert half.log_probs.dtype == half.hidden.dtype == torch.float32
    assert 0 < (half.log_probs - full.log_probs).abs().max() < error
    torch.testing.assert_close(half.log_probs.exp().sum(-1), torch.ones(2, 6))


def test_numbers_out_of_range_name_the_remedy(tmp_path: Path) -> None:
    model = load(made("esmc", tmp_path), precision="float16")
    model.backbone.network.lm_head.decoder.weight.mul_(1e6)
    with pytest.raises(PairmiError, match=r"^MaskedLM: log-probabilities .* overflows, load it with precision='float32'"):
        pairmi.decode(model, "...", "top-k")


def test_an_unknown_precision_is_refused(esm2: str) -> None:
    with pytest.raises(PairmiError, match=r"MaskedLM\(precision='double'\): expected one of float32, float16, bfloat16"):
        load(esm2, precision="double")


def test_a_gpu_is_taken_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert chosen_device(None).type == "cuda"
    assert chosen_device("cpu").type == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert chosen_device(None).type == "cpu"
    with pytest.raises(PairmiError, match="device='cuda': torch sees no GPU here; use device='cpu'"):
        chosen_device("cuda")
    with pytest.raises(PairmiError, match="device='abacus': expected cpu, cuda or cuda:N"):
        chosen_device("abacus")


def test_row_by_row_products_are_those_of_a_linear_map(esm2: str) -> None:
    rowwise = next(module for module in load(esm2).backbone.network.modules() if isinstance(module, Rowwise))
    x = torch.randn(3, 5, rowwise.in_features)
    plain = torch.nn.functional.linear(x, rowwise.weight, rowwise.bias)
    with torch.no_grad():
        torch.testing.assert_close(rowwise(x), plain)
        torch.testing.assert_close(rowwise(x[0]), plain[0])
    assert torch.equal(rowwise(x), plain)  # where gradients are on


def test_weights_and_their_names_stay_as_they_are(esm2: str) -> None:
    raw = AutoModelForMaskedLM.from_pretrained(esm2).state_dict()
    ours = load(esm2).backbone.network.state_dict()
    assert ours.keys() == raw.keys()
    assert all(torch.equal(ours[name], raw[name]) for name in raw)
    assert not any(parameter.requires_grad for parameter in load(esm2).backbone.parameters())


def test_positions_of_the_roberta_family_start_after_the_padding() -> None:
    shape = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "vocab_size": 9}
    roberta = RobertaForMaskedLM(RobertaConfig(**shape, max_position_embeddings=14, pad_token_id=1, bos_token_id=0, eos_token_id=2)).eval()
    assert usable_positions(roberta) == 12
    with torch.no_grad():
        assert roberta(torch.full((1, 12), 5)).logits.shape == (1, 12, 9)
        with pytest.raises((IndexError, RuntimeError)):
            roberta(torch.full((1, 13), 5))
    roberta.config.max_position_embeddings = -1  # as models without a limit say it
    assert usable_positions(roberta) is None
    assert MaskedLM(roberta, Translation({"a": 5}, 4, (0,), (2,)), Settings()).longest is None


def test_ids_that_the_model_does_not_have_are_refused(esm2: str) -> None:
    network = AutoModelForMaskedLM.from_pretrained(esm2)
    with pytest.raises(PairmiError, match=r"MaskedLM: the tokenizer uses ids up to 33, the model knows 0\.\.32; they do not belong"):
        MaskedLM(network, Translation({"A": 5}, 33, (0,), (2,)), Settings())


def test_tokenizers_that_cannot_mask_or_know_nothing_are_refused(bert: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(bert)
    tokenizer.mask_token = None
    with pytest.raises(PairmiError, match="load: the tokenizer of here has no mask token; only masked language models"):
        translate(tokenizer, "here")
    with pytest.raises(PairmiError, match=r"load: the tokenizer of here knows no symbols; its files \(tokenizer.json or vocab.txt\)"):
        translate(transformers.BertTokenizer(), "here")


def test_protein_models_are_told_from_others() -> None:
    def vocabulary(tokens: str) -> dict[str, int]:
        return {token: i for i, token in enumerate(tokens)}

    assert speaks_protein(vocabulary(RESIDUES) | {"<null_1>": 99})
    assert not speaks_protein(vocabulary("ACGTN"))
    assert not speaks_protein(vocabulary(RESIDUES + "ab"))
    assert not speaks_protein(vocabulary(RESIDUES) | {f"word{n}": n for n in range(60)})


def test_names_that_may_be_masked_language_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    Path("runs/step").write_text("")
    assert readable("biohub/ESMC-300M")
    assert readable("runs")
    for name in ("sudoku5", "runs/step", "runs/model.safetensors", "/absent/folder", "../absent", "a/b/c", "a b/c"):
        assert not readable(name)
    Path("sudoku4").mkdir()
    assert load("sudoku4").length == 16  # our own names come first


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"load: the folder .*broken holds no model of transformers: it has no config\.json"),
        ("{", r"load: cannot read the folder .*broken as a masked language model \(.*not a valid JSON file\)"),
        ("{}", r"as a masked language model \(Unrecognized model in .*\)$"),
        ('{"model_type": "klingon"}', r"as a masked language model \(.*model type `klingon` but .*\)$"),
        ('{"model_type": "bert", "vocab_size": "x"}', r"as a masked language model \(.*vocab_size.*\)$"),
        ('{"model_type": "esmc"}', r"as a masked language model \(Error no file named model\.safetensors.*\)$"),
    ],
)
def test_folders_that_hold_no_model_are_refused_in_one_line(config: Path, content: str | None, message: str) -> None:
    if content is not None:
        config.write_text(content)
    with pytest.raises(PairmiError, match=message) as caught:
        load(str(config.parent))
    assert "\n" not in str(caught.value)


def test_a_model_that_is_not_masked_is_refused(config: Path, bert: str) -> None:
    GPT2Config(n_layer=1, n_embd=8, n_head=1).save_pretrained(config.parent)
    AutoTokenizer.from_pretrained(bert).save_pretrained(config.parent)
    with pytest.raises(PairmiError, match=r"as a masked language model \(Unrecognized configuration class .*GPT2Config"):
        load(str(config.parent))


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    folder = Path(made("esmc", tmp_path))
    (folder / "model.safetensors").write_bytes(b"not tensors at all")
    with pytest.raises(PairmiError, match=r"esmc as a masked language model \(.*header"):
        load(str(folder))
    (folder / "model.safetensors").unlink()
    torch.save({"lm_head": print}, folder / "pytorch_model.bin")  # a pickle that names a function
    with pytest.raises(PairmiError, match=r"load: the weights of .*esmc are damaged or hold more than tensors; get them as safetensors"):
        load(str(folder))


def test_a_body_without_its_prediction_head_is_refused(tmp_path: Path) -> None:
    folder = made("esm2", tmp_path)
    EsmModel.from_pretrained(folder).save_pretrained(folder)  # transformers would go on with a random head
    with pytest.raises(PairmiError, match=r"load: .*esm2 has no weights for lm_head\..* \(\d missing in all\); it is not a whole masked"):
        load(folder)


def test_offline_is_one_line(capsys: pytest.CaptureFixture) -> None:
    assert main(["mi", "--backbone", "biohub/ESMC-300M", "--canvas", "MK.."]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "pairmi mi: load: cannot get 'biohub/ESMC-300M' from the model hub (HF_HUB_OFFLINE is set and it is not in the cache); "
        "where there is a network: hf download biohub/ESMC-300M --local-dir FOLDER; then load FOLDER\n"
    )


def test_what_the_hub_said_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with pytest.raises(PairmiError, match=r"load: cannot get 'a/b' from the model hub \(a/b is not a model\); where"), reading("a/b"):
        raise OSError("a/b is not a model.\nMore that nobody reads")


def test_reading_is_quiet_and_leaves_the_settings_alone(esm2: str, capfd: pytest.CaptureFixture) -> None:
    logging = transformers.utils.logging
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    load(esm2)
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
    assert capfd.readouterr() == ("", "")


def test_without_transformers_the_extra_is_named(esm2: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(__version__="4.57.1"))
    with pytest.raises(PairmiError, match=r"load: .* needs transformers >= 5\.22, found 4\.57\.1; pip install 'pairmi\[protein\]'"):
        load(esm2)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(PairmiError, match=r"load: .* needs transformers >= 5\.22, found none; pip install 'pairmi\[protein\]'"):
        load(esm2)


def test_nothing_of_transformers_is_imported_before_it_is_needed() -> None:
    heavy = ("transformers", "huggingface_hub", "antiberty")
    code = f"import sys, pairmi.commands.decode; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
