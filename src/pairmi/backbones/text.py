"""Text by a tokenizer of `transformers`: which one it is, how it cuts text into symbols, and how it joins them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pairmi.backbones.pretrained import READING, reading, told
from pairmi.types import PairmiError

MASKS = ("[MASK]", "<mask>", "<|mask|>", "<|mdm_mask|>", "<MASK>")  # as tokenizers write it: one's own is a mask, any other a mistake
IDEOGRAPHS = "\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"  # and their punctuation


@dataclass(frozen=True)
class Text:
    """What a tokenizer makes of text, as our symbols; its own mask token stands for one unknown position."""

    tokenizer: Any
    ids: Mapping[str, int]  # of the usable symbols
    blank: str  # what we call an unknown position

    def encode(self, text: str) -> list[str]:
        """The symbols of a text; what the tokenizer does not know, or the mask of another one, as it stands."""
        own = self.tokenizer.mask_token
        alien = re.compile("(" + "|".join(re.escape(mask) for mask in MASKS if mask != own and mask not in self.ids) + ")")
        return [symbol for n, part in enumerate(alien.split(text)) for symbol in ([part] if n % 2 else self._symbols(part))]

    def decode(self, symbols: list[str]) -> str:
        """The text of symbols and blanks, as the tokenizer joins it; without the spaces that only WordPiece sees between ideographs."""
        ids = [self.tokenizer.mask_token_id if symbol == self.blank else self.ids[symbol] for symbol in symbols]
        text = str(self.tokenizer.decode(ids))
        return re.sub(f"(?<=[{IDEOGRAPHS}]) | (?=[{IDEOGRAPHS}])", "", text) if self._spaced else text

    def chat(self, prompt: str) -> str:
        """A question to a chat model, by its template, up to where its answer begins."""
        if not self.tokenizer.chat_template:
            raise PairmiError("chat: this model's tokenizer has no chat template; give the prompt as it is, without chat=True")
        asked = [{"role": "user", "content": prompt}]
        return str(self.tokenizer.apply_chat_template(asked, add_generation_prompt=True, tokenize=False))

    def _symbols(self, text: str) -> list[str]:
        made = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=self.tokenizer.is_fast)
        spans = made["offset_mapping"] if self.tokenizer.is_fast else [(0, 0)] * len(made["input_ids"])
        unknown, mask = self.tokenizer.unk_token_id, self.tokenizer.mask_token_id
        found = []
        for i, (start, end) in zip(made["input_ids"], spans, strict=True):
            if i == unknown and i not in self._names and end > start:
                found.append(text[start:end])
            else:
                found.append(self.blank if i == mask else self._names.get(i) or str(self.tokenizer.convert_ids_to_tokens(i)))
        return found

    @cached_property
    def _names(self) -> dict[int, str]:
        return {i: symbol for symbol, i in self.ids.items()}

    @cached_property
    def _spaced(self) -> bool:
        """Whether it sets ideographs apart by spaces that were not there."""
        return str(self.tokenizer.decode(self.tokenizer("中文", add_special_tokens=False)["input_ids"])) == "中 文"


def read_tokenizer(
    source: str, given: Any = None, allow_code: bool = False, revision: str | None = None, otherwise: str | None = None
) -> Any:
    """The tokenizer of a model: an object as it is, that of a folder, or of a class by its name; else what the model's own files say.

    Where these hold a vocab.txt alone it is WordPiece; where they hold nothing, it is that of another model, `otherwise`.
    """
    if given is not None and not isinstance(given, str | Path):
        if not callable(given) or not callable(getattr(given, "get_vocab", None)):
            raise PairmiError(f"load: tokenizer= takes an object, a folder or the name of a class, got {type(given).__name__}")
        return given
    kind, places, tried = "AutoTokenizer", [source, otherwise] if given is None else [str(given)], []
    if re.fullmatch(r"\w+Tokenizer(Fast)?", str(given)):
        kind, places = str(given), [source]
    with reading(source) as transformers:
        if kind not in dir(transformers):
            raise PairmiError(f"load: transformers has no tokenizer class {kind!r}; give another, an object or a folder")
        for place in filter(None, places):
            commit = revision if place == source else None
            try:
                found = getattr(transformers, kind).from_pretrained(place, trust_remote_code=allow_code, revision=commit)
            except READING as error:
                tried.append(f"{kind} of {place} ({told(error)})")
            else:
                if set(found.get_vocab()) - set(found.all_special_tokens):
                    return found
                tried.append(f"{kind} of {place} (knows no symbols)")
            words = Path(place) / "vocab.txt"
            if kind == "AutoTokenizer" and words.is_file():
                return transformers.BertTokenizer(vocab=str(words), do_lower_case=not any(x.isupper() for x in _plain(words)))
    raise PairmiError(
        f"load: no tokenizer for {source}; tried {', '.join(tried)}, and WordPiece by a vocab.txt; "
        "give tokenizer=OBJECT, a folder, or the name of a class"
    )


def _plain(words: Path) -> list[str]:
    """The first letters of the ordinary entries of a vocab.txt, one a line."""
    return [word[0] for word in words.read_text(encoding="utf-8").split("\n") if word and not re.fullmatch(r"[\[<].+[\]>]", word)]
