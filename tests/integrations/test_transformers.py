"""A model and a tokenizer that the caller holds: the same as loading them by name, and the caller's objects stay as they were."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertLMHeadModel,
    BertModel,
    BertTokenizer,
    GenerationMixin,
    GPT2Config,
    GPT2LMHeadModel,
)

import pairmi
from foreign import made
from heads import low_rank, save_head
from own_code import own_code
from pairmi.backbones.huggingface import twin
from pairmi.backbones.products import Rowwise
from pairmi.integrations.transformers import custom_generate, generate, with_block
from pairmi.types import PairmiError

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[EOS]", *"abcdefgh"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return made("esm2", tmp_path_factory.mktemp("esm2"))


@pytest.fixture(scope="module")
def esm2(folder: str) -> tuple[Any, Any]:
    return AutoModelForMaskedLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)


class Diffusion(BertForMaskedLM, GenerationMixin):
    """A masked diffusion model with the interface of generating models."""

    def prepare_inputs_for_generation(self, input_ids: torch.Tensor, **kwargs: Any) -> dict[str, Any]:
        return {"input_ids": input_ids}


@pytest.fixture(scope="module")
def diffusion() -> tuple[Any, Any]:
    tokenizer = BertTokenizer(vocab={token: i for i, token in enumerate(WORDS)}, do_lower_case=False, eos_token="[EOS]")
    torch.manual_seed(5)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "initializer_range": 0.4}
    return Diffusion(BertConfig(**shape, vocab_size=len(WORDS), pad_token_id=0, max_position_embeddings=64)).eval(), tokenizer


@pytest.mark.parametrize("rule", ["eb", "mi-bound:floor=0"])
def test_it_gives_what_loading_by_name_gives(folder: str, esm2: tuple[Any, Any], rule: str) -> None:
    texts = ["MKV.LAWC..Y", "MK.AY"]
    by_name = pairmi.decode(pairmi.load(folder), texts, rule, seed=3)
    by_object = generate(*esm2, [text.replace(".", "<mask>") for text in texts], rule, seed=3)
    assert [one.text.replace(" ", "") for one in by_object] == [one.text for one in by_name]
    assert [(one.passes, one.rows, one.probe_rows) for one in by_object] == [(one.passes, one.rows, one.probe_rows) for one in by_name]
    assert by_object[0].ids.tolist()[0] == esm2[1].cls_token_id
    assert generate(*esm2, "MK<mask>AY", rule, seed=3).text.replace(" ", "")[:2] == "MK"


def test_the_callers_model_stays_as_it_was(esm2: tuple[Any, Any]) -> None:
    model, tokenizer = esm2
    model.train()
    kinds = [type(module) for module in model.modules()]
    generate(model, tokenizer, "MK<mask>AY")
    assert model.training
    assert [type(module) for module in model.modules()] == kinds
    assert Rowwise not in kinds
    assert all(parameter.requires_grad for parameter in model.parameters())
    other = twin(model)
    assert [p.data_ptr() for p in other.parameters()] == [p.data_ptr() for p in model.parameters()]
    model.eval()


def test_what_is_given_and_no_usable_symbol_stays_and_is_never_written(esm2: tuple[Any, Any]) -> None:
    model, tokenizer = esm2
    runs = [generate(model, tokenizer, "MX<mask><mask>-<mask>", seed=seed) for seed in range(20)]
    for one in runs:
        text = tokenizer.decode(one.ids[1:-1]).replace(" ", "")
        assert text[1] == "X"
        assert text[4] == "-"
        assert set(text[2:4] + text[5]) <= set("ACDEFGHIKLMNPQRSTVWY")
    assert len({one.text for one in runs}) > 1


def test_a_prompt_is_continued_up_to_the_end_of_text(diffusion: tuple[Any, Any]) -> None:
    model, tokenizer = diffusion
    runs = [generate(model, tokenizer, "a b [SEP] c", "sequential", length=8, seed=seed) for seed in range(40)]
    assert all(one.passes == 8 and len(one.ids) == 2 + 4 + 8 for one in runs)
    ended = [one for one in runs if WORDS.index("[EOS]") in one.ids[5:].tolist()]
    assert 0 < len(ended) < 40
    for one in ended:
        inner = one.ids[1:-1].tolist()
        assert len(one.text.split()) == inner.index(WORDS.index("[EOS]")) - 1  # without [SEP] and what follows the end
    written = {token for one in runs for token in one.ids[5:-1].tolist()}
    assert written <= set(range(5, len(WORDS)))


def test_generate_of_transformers_takes_our_rules(diffusion: tuple[Any, Any]) -> None:
    model, tokenizer = diffusion
    alone = torch.tensor([[6, 7, 8]])
    out = model.generate(alone, max_new_tokens=6, do_sample=True, custom_generate=custom_generate(tokenizer, "eb:budget=1"))
    assert out.shape == (1, 9)
    assert out[0, :3].tolist() == [6, 7, 8]
    padded, attended = torch.tensor([[6, 7, 8], [0, 0, 9]]), torch.tensor([[1, 1, 1], [0, 0, 1]])
    both = model.generate(
        padded, attention_mask=attended, max_new_tokens=6, do_sample=True, custom_generate=custom_generate(tokenizer, "eb:budget=1")
    )
    assert torch.equal(both[0], out[0])  # whoever else is in the batch
    assert both[1, :3].tolist() == [0, 0, 9]
    greedy = model.generate(alone, max_new_tokens=6, do_sample=False, custom_generate=custom_generate(tokenizer, "sequential"))
    again = model.generate(alone, max_new_tokens=6, do_sample=False, custom_generate=custom_generate(tokenizer, "sequential", seed=9))
    assert torch.equal(greedy, again)


def test_what_cannot_be_done_is_said(folder: str, esm2: tuple[Any, Any], diffusion: tuple[Any, Any]) -> None:
    with pytest.raises(PairmiError, match="nothing is unknown in prompt 1; write mask tokens"):
        generate(*esm2, ["M<mask>", "MKV"])
    with pytest.raises(PairmiError, match="expected a prompt or a list of prompts, each a text"):
        generate(*esm2, [3])
    with pytest.raises(PairmiError, match="length must be >= 0 tokens, got -1"):
        generate(*diffusion, "a", length=-1)
    with pytest.raises(PairmiError, match="expected a network of transformers with its weights, got str"):
        generate("bert", esm2[1], "M<mask>")
    unmasked = AutoTokenizer.from_pretrained(folder, mask_token=None)
    unmasked.mask_token = None
    with pytest.raises(PairmiError, match="has no mask token"):
        generate(esm2[0], unmasked, "a")


@pytest.mark.parametrize("kind", [GPT2LMHeadModel, BertModel, BertLMHeadModel])
def test_a_network_that_is_no_masked_language_model_is_refused(diffusion: tuple[Any, Any], kind: Any) -> None:
    shape = {"vocab_size": len(WORDS), "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4}
    network = kind(GPT2Config(**shape) if kind is GPT2LMHeadModel else BertConfig(**shape, intermediate_size=32))
    message = f"^generate: expected a masked language model, got {kind.__name__}; load one by transformers.AutoModelForMaskedLM$"
    with pytest.raises(PairmiError, match=message):
        generate(network, diffusion[1], "a [MASK]")
    with pytest.raises(PairmiError, match=message):
        custom_generate(diffusion[1])(network, torch.tensor([[6]]), None, None, None)


def test_what_is_no_network_or_tokenizer_of_transformers_is_refused(esm2: tuple[Any, Any]) -> None:
    with pytest.raises(PairmiError, match=r"^generate: expected a network of transformers, got Linear; a backbone of your own decodes by "):
        generate(torch.nn.Linear(2, 2), esm2[1], "M<mask>")
    for tokenizer in (None, "esm2", esm2[0]):
        with pytest.raises(PairmiError, match=f"^generate: expected a tokenizer of transformers, got {type(tokenizer).__name__}; load it"):
            generate(esm2[0], tokenizer, "M<mask>")


def test_a_block_is_a_parameter_of_the_rule() -> None:
    assert with_block("eb", None) == "eb"
    assert with_block("eb", 8) == "eb:block=8"
    assert with_block("eb:budget=1", 8) == "eb:budget=1,block=8"


def test_blocks_are_filled_from_left_to_right(diffusion: tuple[Any, Any]) -> None:
    one = generate(*diffusion, "a b", "top-k:k=2", length=8, block=2)
    assert one.passes == 4
    first = generate(*diffusion, "a b", "top-k:k=2", length=8, block=8, seed=3)
    assert first.passes == 4
    assert torch.equal(generate(*diffusion, "a b", "sequential", length=4, block=1).ids[:4], one.ids[:4])


def test_a_head_estimates_for_the_callers_model(folder: str, esm2: tuple[Any, Any], tmp_path: Path) -> None:
    made_head = low_rank(width=32, symbols=20, length=0)
    file = save_head(tmp_path / "head.safetensors", made_head, pairmi.load(folder), layers=(1,))
    one = generate(*esm2, "MK<mask><mask>AY", "mi-bound:mi=head", head=Path(file))
    same = pairmi.decode(pairmi.load(folder, head=file), "MK..AY", "mi-bound:mi=head")
    assert one.text.replace(" ", "") == same.text
    assert one.probe_rows == 0


@pytest.mark.parametrize("kind", ["llada", "Dream", "mdlm"])
def test_a_diffusion_model_of_text_is_called_as_its_family_is(tmp_path: Path, kind: str) -> None:
    folder = own_code(kind, tmp_path / "own")
    by_name = pairmi.load(folder, allow_code=True)
    loader = AutoModelForMaskedLM if kind == "mdlm" else AutoModel
    model, tokenizer = loader.from_pretrained(folder, trust_remote_code=True), AutoTokenizer.from_pretrained(folder)
    known = len(tokenizer), tokenizer.mask_token
    expected = pairmi.decode(by_name, prompt="the cat", rule="eb:budget=2,block=4", new_tokens=8, seed=1)
    found = generate(model, tokenizer, "the cat", "eb:budget=2", length=8, block=4, seed=1)
    assert found.ids.tolist() == by_name.backbone.translation.inputs(expected.tokens[None])[0].tolist()
    assert found.passes == expected.passes
    assert (len(tokenizer), tokenizer.mask_token) == known


def test_the_network_of_a_loaded_model_gives_the_same_in_blocks(folder: str, esm2: tuple[Any, Any]) -> None:
    """It already computes logits only where they are asked for; once is enough."""
    prompt, how = "MK<mask><mask>LV<mask><mask>", {"rule": "top-k:k=2", "block": 2, "seed": 3}
    assert torch.equal(generate(pairmi.load(folder).backbone.network, esm2[1], prompt, **how).ids, generate(*esm2, prompt, **how).ids)
