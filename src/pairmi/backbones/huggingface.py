"""Masked models of the Hugging Face family, from files or from the caller: what `AutoModelForMaskedLM` reads, and text diffusion models."""

import copy
from itertools import chain
from typing import Any

from torch import nn

from pairmi.backbones.families import MASKED_LM, Family
from pairmi.backbones.masked_lm import MaskedLM, Settings
from pairmi.backbones.pretrained import read_network
from pairmi.backbones.text import Text, read_tokenizer
from pairmi.backbones.translation import RESIDUES, Translation, blanks_beside
from pairmi.types import PairmiError


def load(
    name: str, settings: Settings, family: Family = MASKED_LM, tokenizer: Any = None, allow_code: bool = False, revision: str | None = None
) -> MaskedLM:
    """A folder or a hub id as a backbone.

    Of a protein model the alphabet is the 20 standard residues in alphabetical order; of any other its ordinary tokens in the order of
    their ids, as they are: pieces of words, too. Text over them is read and written by its tokenizer.
    """
    words = read_tokenizer(name, tokenizer, allow_code, revision, family.tokenizer)
    network = read_network(name, settings.attention, family.loader, allow_code, revision)
    return MaskedLM(network, translate(words, name, family, network.config), settings, family)


def checked_network(network: Any) -> Any:
    """What can be a network of `transformers`."""
    if not isinstance(network, nn.Module) or next(network.parameters(), None) is None:
        raise PairmiError(f"model: expected a network of transformers with its weights, got {type(network).__name__}")
    return network


def held(network: Any, translation: Translation, family: Family = MASKED_LM) -> MaskedLM:
    """A network that the caller already holds, untouched, as a backbone: where it lives, in its own precision."""
    place = str(next(checked_network(network).parameters()).device)
    return MaskedLM(twin(network), translation, Settings(device=place, precision="float32"), family)  # float32: as its weights are


def twin(network: nn.Module) -> nn.Module:
    """A copy of the modules over the same tensors: what is frozen, wrapped or switched to evaluation in it stays as it was in the first.

    It takes no memory for weights. Training the first one changes the twin, too.
    """
    tensors = chain(network.parameters(), network.buffers())
    shared = {id(one): nn.Parameter(one.detach(), False) if isinstance(one, nn.Parameter) else one.detach() for one in tensors}
    return copy.deepcopy(network, shared)


def translate(tokenizer: Any, source: str, family: Family = MASKED_LM, config: Any = None) -> Translation:
    """The usable symbols of a tokenizer and the special tokens that it puts around a sequence."""
    if family.generates:
        return _generated(tokenizer, source, family, config)
    if tokenizer.mask_token_id is None:
        raise PairmiError(f"load: the tokenizer of {source} has no mask token; only masked language models can be probed")
    special = set(tokenizer.all_special_ids)
    ordinary = {token: i for token, i in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1]) if i not in special}
    if not ordinary:
        raise PairmiError(f"load: the tokenizer of {source} knows no symbols; its files (tokenizer.json or vocab.txt) are missing")
    if speaks_protein(ordinary):
        ordinary = {residue: ordinary[residue] for residue in RESIDUES}
    mask, framed = tokenizer.mask_token_id, tokenizer(tokenizer.mask_token)["input_ids"]
    before, after = framed[: framed.index(mask)], framed[framed.index(mask) + 1 :]
    return Translation(ordinary, mask, tuple(before), tuple(after), _text(tokenizer, ordinary))


def _generated(tokenizer: Any, source: str, family: Family, config: Any) -> Translation:
    """That of a diffusion model: every token is a symbol but the mask, whose id the configuration or the family knows."""
    mask = int(config.to_dict().get("mask_token_id") or family.mask or 0)
    if tokenizer.mask_token_id != mask:
        named = tokenizer.convert_ids_to_tokens(mask) if mask < len(tokenizer) else None
        tokenizer.add_special_tokens({"mask_token": named or "[MASK]"})
    if tokenizer.mask_token_id != mask:
        raise PairmiError(
            f"load: the mask of {source} is {mask}, its tokenizer says {tokenizer.mask_token_id}; they do not belong together"
        )
    every = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    usable = {token: i for token, i in every if i != mask and i < config.vocab_size}
    return Translation(usable, mask, (), (), _text(tokenizer, usable))


def _text(tokenizer: Any, usable: dict[str, int]) -> Text | None:
    """How text is read and written; None where every symbol is one letter."""
    return Text(tokenizer, usable, blanks_beside(usable)[0]) if any(len(symbol) > 1 for symbol in usable) else None


def speaks_protein(ordinary: dict[str, int]) -> bool:
    """Whether a vocabulary is that of a protein model: few tokens, all 20 residues, and no letter in lower case."""
    letters = [token for token in ordinary if len(token) == 1 and token.isalpha()]
    return len(ordinary) <= 64 and set(RESIDUES) <= set(letters) and all(letter.isupper() for letter in letters)
