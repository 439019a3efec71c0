"""Tiny masked diffusion models of text in folders that bring their own code, with the interfaces of LLaDA, Dream and MDLM."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

CORPUS = ["the cat sat on the mat and the dog sat on the log", "a cat and a dog", "The capital of France is Paris.", "你好世界"]
CHAT = "{% for m in messages %}<|user|>{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}<|answer|>{% endif %}"

CONFIGURATION = """
from transformers import PretrainedConfig

class Config(PretrainedConfig):
    model_type = "{kind}"

    def __init__(self, vocab_size=100, {width}=32, {depth}=2, {longest}=64, **kwargs):
        super().__init__(**kwargs)
        self.vocab_size, self.{width}, self.{depth}, self.{longest} = vocab_size, {width}, {depth}, {longest}

    {properties}
"""
# LLaDA says its sizes under two names, as properties; MDLM under its own only
PROPERTIES = "num_hidden_layers, hidden_size = property(lambda self: self.n_layers), property(lambda self: self.d_model)"

MODELING = """
import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel
from transformers.modeling_outputs import MaskedLMOutput
from .configuration_own import Config

class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(functional.layer_norm(x, x.shape[-1:])).chunk(3, dim=-1)
        return x + self.out(functional.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[:, 0])

class Last(nn.Module):
    def __init__(self, width, size):
        super().__init__()
        self.linear = nn.Linear(width, size)

    def forward(self, x):
        return self.linear(functional.layer_norm(x, x.shape[-1:]))

class Body(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = nn.Embedding(config.vocab_size, config.{width})
        self.place = nn.Embedding(config.{longest}, config.{width})
        self.blocks = nn.ModuleList(Layer(config.{width}) for _ in range(config.{depth}))
        self.output_layer = Last(config.{width}, config.vocab_size)

    def forward(self, ids):
        states = [self.embed(ids) + self.place.weight[: ids.shape[1]]]
        for block in self.blocks:
            states.append(block(states[-1]))
        return self.output_layer(states[-1]), tuple(states)

class Network(PreTrainedModel):
    config_class = Config

    def __init__(self, config):
        super().__init__(config)
        self.backbone = Body(config)
        self.post_init()

    {forward}
"""
LLADA = """def get_output_embeddings(self):
        return self.backbone.output_layer.linear

    def forward(self, input_ids=None, output_attentions=None, output_hidden_states=None):
        if output_attentions:
            raise ValueError("no attentions here")
        logits, states = self.backbone(input_ids)
        return MaskedLMOutput(logits=logits, hidden_states=states if output_hidden_states else None)"""
MDLM = """def forward(self, input_ids=None, timesteps=None, output_hidden_states=None, return_dict=None):
        logits, states = self.backbone(input_ids)
        logits = logits + 0 * timesteps[:, None, None]
        return MaskedLMOutput(logits=logits, hidden_states=states) if return_dict else logits"""
SIZES = {
    "llada": ("d_model", "n_layers", "max_sequence_length"),
    "Dream": ("hidden_size", "num_hidden_layers", "max_position_embeddings"),
    "mdlm": ("hidden_dim", "n_blocks", "model_length"),
}


def byte_level(specials: list[str]) -> Tokenizer:
    """A small BPE over bytes, as GPT-2 has it; the special tokens come last."""
    words = Tokenizer(models.BPE())
    words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    words.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False))
    words.add_special_tokens(specials)
    words.post_processor = processors.ByteLevel(trim_offsets=False)
    return words


def own_code(kind: str, folder: Path) -> str:
    """A folder with code, weights and a tokenizer."""
    folder.mkdir(parents=True)
    width, depth, longest = SIZES[kind]
    names = {"kind": kind, "width": width, "depth": depth, "longest": longest}
    (folder / "configuration_own.py").write_text(CONFIGURATION.format(**names, properties=PROPERTIES if kind == "llada" else "pass"))
    (folder / "modeling_own.py").write_text(MODELING.format(**names, forward=MDLM if kind == "mdlm" else LLADA))
    mask = {"llada": "<|mdm_mask|>", "Dream": "<|mask|>", "mdlm": None}[kind]
    words = byte_level(["<|endoftext|>", "<|user|>", "<|answer|>", *([mask] if mask else [])])
    size = words.get_vocab_size() + 5  # and a few columns that mean nothing
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<|endoftext|>", chat_template=CHAT if kind == "llada" else None)
    if kind == "Dream":
        tokenizer.mask_token = mask  # the others do not tell
    tokenizer.save_pretrained(folder)
    loader = "AutoModelForMaskedLM" if kind == "mdlm" else "AutoModel"
    config = {"model_type": kind, "vocab_size": size, width: 32, depth: 2, longest: 64, "architectures": ["Network"]}
    config["auto_map"] = {"AutoConfig": "configuration_own.Config", loader: "modeling_own.Network"}
    config["mask_token_id"] = words.token_to_id(mask) if mask else words.get_vocab_size()
    (folder / "config.json").write_text(json.dumps(config))
    shapes = {
        "embed.weight": (size, 32),
        "place.weight": (64, 32),
        "output_layer.linear.weight": (size, 32),
        "output_layer.linear.bias": (size,),
    }
    for n in range(2):
        shapes |= {f"blocks.{n}.qkv.weight": (96, 32), f"blocks.{n}.qkv.bias": (96,)}
        shapes |= {f"blocks.{n}.out.weight": (32, 32), f"blocks.{n}.out.bias": (32,)}
    rng = torch.Generator().manual_seed(0)
    weights = {f"backbone.{name}": 0.4 * torch.randn(shape, generator=rng) for name, shape in shapes.items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return str(folder)
