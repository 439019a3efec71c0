"""Tiny masked language models with random, opinionated weights, in folders such as the model hub has."""

from pathlib import Path

import torch
from transformers import BertConfig, BertForMaskedLM, BertTokenizer, EsmcConfig, EsmcForMaskedLM, EsmConfig, EsmForMaskedLM, EsmTokenizer

ESM = ["<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWCXBUZO.-", "<null_1>", "<mask>"]
ODD = ["a", "[MASK]", "##b", "the", "[PAD]", ".", "[SEP]", "x", "[CLS]", "[UNK]", "_"]  # special tokens anywhere, words, pieces
LETTERS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abc._"]  # one letter each, and the usual blanks are symbols
ANTIBODY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"ACDEFGHIKLMNPQRSTVWY"]

# Widths are multiples of 32, as those of real models are: torch takes two vectors (of 16 floats at most) at a time and rounds what is
# left otherwise, so that in other widths the last bits of SiLU and its like depend on how many rows a batch has.
SHAPE = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "initializer_range": 0.4}


def esmc(folder: Path) -> None:
    """64 logit columns for 33 tokens, and no tokenizer in the folder."""
    EsmcForMaskedLM(EsmcConfig(**SHAPE, max_position_embeddings=64)).save_pretrained(folder)


def esm2(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(ESM))
    EsmTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    ids = {"vocab_size": len(ESM), "mask_token_id": 32, "pad_token_id": 1}
    like_esm2 = {"position_embedding_type": "rotary", "token_dropout": True, "emb_layer_norm_before": False}
    EsmForMaskedLM(EsmConfig(**SHAPE, **ids, **like_esm2, max_position_embeddings=66)).save_pretrained(folder)


def bert(folder: Path, tokens: list[str]) -> None:
    """With a few more logit columns than tokens."""
    BertTokenizer(vocab={token: i for i, token in enumerate(tokens)}, do_lower_case=False).save_pretrained(folder)
    config = BertConfig(**SHAPE, vocab_size=len(tokens) + 6, pad_token_id=tokens.index("[PAD]"), max_position_embeddings=64)
    BertForMaskedLM(config).save_pretrained(folder)


def antiberty(models: Path) -> None:
    """The layout of the package `antiberty`: the vocabulary beside the model, weights in a .bin file, heads that we do not use."""
    folder = models / "AntiBERTy_md_smooth"
    network = BertForMaskedLM(BertConfig(**SHAPE, vocab_size=25, pad_token_id=0, max_position_embeddings=64))
    network.config.save_pretrained(folder)
    torch.save(network.state_dict() | {"cls.species.weight": torch.zeros(6, 32)}, folder / "pytorch_model.bin")
    (models / "vocab.txt").write_text("\n".join(ANTIBODY))


MAKERS = {"esmc": esmc, "esm2": esm2, "bert": lambda folder: bert(folder, ODD), "letters": lambda folder: bert(folder, LETTERS)}


def made(name: str, folder: Path, seed: int = 0) -> str:
    """The folder of a new tiny model."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        MAKERS[name](folder / name)
    return str(folder / name)
