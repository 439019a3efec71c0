"""A small BERT with random weights in a folder of `transformers`, and sequences for it: something of one's own to try `pairmi fit` on.

python experiments/tiny_bert.py FOLDER
pairmi fit --backbone FOLDER/model --data FOLDER/data.txt --minutes 5 --out FOLDER/fit
"""

import sys
from pathlib import Path

import torch
from transformers import BertConfig, BertForMaskedLM, BertTokenizer

SPECIAL, LETTERS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"), "abcdefgh"


def main(folder: Path, sequences: int = 400) -> None:
    """Weights large enough that positions depend on each other; sequences of 16 to 24 letters."""
    torch.manual_seed(0)
    tokens = (*SPECIAL, *LETTERS)
    BertTokenizer(vocab={token: i for i, token in enumerate(tokens)}, do_lower_case=False).save_pretrained(folder / "model")
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "initializer_range": 0.25}
    BertForMaskedLM(BertConfig(**shape, vocab_size=len(tokens), pad_token_id=0, max_position_embeddings=64)).save_pretrained(
        folder / "model"
    )
    lines = ["".join(LETTERS[n] for n in torch.randint(len(LETTERS), (16 + 4 * (row % 3),)).tolist()) for row in range(sequences)]
    (folder / "data.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
