"""Masked language models of the Hugging Face family: ESM-2, BERT and whatever else `AutoModelForMaskedLM` reads."""

from typing import Any

from pairmi.backbones.masked_lm import MaskedLM, Settings
from pairmi.backbones.pretrained import read_network, reading
from pairmi.backbones.translation import RESIDUES, Translation, around
from pairmi.types import PairmiError


def load(source: str, settings: Settings) -> MaskedLM:
    """A folder or a hub id as a backbone.

    Of a protein model the alphabet is the 20 standard residues in alphabetical order; of any other its ordinary tokens in the order of
    their ids, as they are: pieces of words, too.
    """
    with reading(source) as transformers:
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    translation = translate(tokenizer, source)
    return MaskedLM(read_network(source, settings.attention), translation, settings)


def translate(tokenizer: Any, source: str) -> Translation:
    """The usable symbols of a tokenizer and the special tokens that it puts around a sequence."""
    if tokenizer.mask_token_id is None:
        raise PairmiError(f"load: the tokenizer of {source} has no mask token; only masked language models can be probed")
    special = set(tokenizer.all_special_ids)
    ordinary = {token: i for token, i in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1]) if i not in special}
    if not ordinary:
        raise PairmiError(f"load: the tokenizer of {source} knows no symbols; its files (tokenizer.json or vocab.txt) are missing")
    if speaks_protein(ordinary):
        ordinary = {residue: ordinary[residue] for residue in RESIDUES}
    before, after = around(tokenizer(tokenizer.mask_token)["input_ids"], tokenizer.mask_token_id)
    return Translation(ordinary, tokenizer.mask_token_id, before, after)


def speaks_protein(ordinary: dict[str, int]) -> bool:
    """Whether a vocabulary is that of a protein model: few tokens, all 20 residues, and no letter in lower case."""
    letters = [token for token in ordinary if len(token) == 1 and token.isalpha()]
    return len(ordinary) <= 64 and set(RESIDUES) <= set(letters) and all(letter.isupper() for letter in letters)
