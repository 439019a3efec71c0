"""Decoding by our rules with a model and a tokenizer of `transformers` that the caller already holds."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from pairmi.api import decode
from pairmi.backbones.families import MASKED_LM, Family, family_of
from pairmi.backbones.huggingface import checked_network, held, translate
from pairmi.backbones.translation import Translation
from pairmi.loading import with_head
from pairmi.model import Model, Wrapped
from pairmi.results import Result
from pairmi.types import Backbone, PairmiError, Prediction, Tokens

CustomGenerate = Callable[..., Int[Tensor, "B T"]]
Decoder = Callable[..., Any]  # of a model and canvases: a `Result` of each


@dataclass(frozen=True)
class Generated:
    """One completed prompt with what it cost."""

    text: str  # without special tokens, up to the end-of-text token
    ids: Int[Tensor, " T"]  # the tokenizer's, special tokens included
    passes: int  # calls of the network that this prompt took part in (NFE), without those of probing
    rows: int  # sequences evaluated for it, without the probes
    probe_rows: int


def generate(
    model: Any,
    tokenizer: Any,
    prompts: Any,
    rule: str = "eb",
    *,
    length: int | None = None,
    block: int | None = None,
    head: str | Path | None = None,
    verify: bool = False,
    seed: int = 0,
    temperature: float = 1.0,
    greedy: bool = False,
    batch_size: int = 64,
) -> Any:
    """Complete prompts with a masked model of `transformers`: one string gives a `Generated`, a list gives a list.

    Every mask token in a prompt is filled; with `length`, that many tokens more are written behind it, among them perhaps the
    end-of-text token. `block` fills so many positions from left to right before the next are touched. `rule`, `verify`, `seed`,
    `temperature` and `greedy` are those of `pairmi.decode`; `head` is the estimate behind `mi=head`: a file, a folder or a hub id.
    The model itself is left as it is.
    """
    texts = [prompts] if isinstance(prompts, str) else list(prompts)
    if not texts or not all(isinstance(text, str) for text in texts):
        raise PairmiError(f"generate: expected a prompt or a list of prompts, each a text, got {prompts!r}")
    translation = _translation(model, tokenizer)
    inner = [translation.stripped(tokenizer(text)["input_ids"]) for text in texts]
    chosen = with_block(rule, block)
    decoder = partial(decode, rule=chosen, verify=verify, seed=seed, temperature=temperature, greedy=greedy, batch_size=batch_size)
    new, ends = length or 0, tokenizer.eos_token_id if length is not None else None
    found = []
    for filled, result in _completed(model, translation, inner, new, ends, head, decoder):
        ids = torch.tensor([*translation.before, *filled, *translation.after])
        shown = filled[: filled.index(ends, len(filled) - new)] if ends in filled[len(filled) - new :] else filled
        text = tokenizer.decode(shown, skip_special_tokens=True)
        found.append(Generated(text, ids, result.passes, result.rows, result.probe_rows))
    return found[0] if isinstance(prompts, str) else found


def custom_generate(
    tokenizer: Any, rule: str = "eb", *, block: int | None = None, head: str | Path | None = None, verify: bool = False, seed: int = 0
) -> CustomGenerate:
    """What `model.generate(**inputs, max_new_tokens=N, custom_generate=...)` takes; `do_sample` and `temperature` are those of its call.

    The tokenizer comes in here, because `generate` does not hand its own on. Padding is taken off, as the attention mask says, and put
    back: no row knows of the others.
    """

    def decoding(
        model: Any, input_ids: Tokens, logits_processor: Any, stopping_criteria: Any, generation_config: Any, **model_kwargs: Any
    ) -> Int[Tensor, "B T"]:
        bare = replace(_translation(model, tokenizer), before=(), after=())  # these ids, and nothing around them
        attended = model_kwargs.get("attention_mask")
        kept = torch.ones_like(input_ids).bool() if attended is None else attended.bool()
        inner = [row[keep].tolist() for row, keep in zip(input_ids, kept, strict=True)]
        length = generation_config.max_length - input_ids.shape[1]
        drawn = generation_config.do_sample
        temperature = (generation_config.temperature or 1.0) if drawn else 1.0
        decoder = partial(decode, rule=with_block(rule, block), verify=verify, seed=seed, temperature=temperature, greedy=not drawn)
        filled = _completed(model, bare, inner, length, tokenizer.eos_token_id, head, decoder)
        new = torch.tensor([ids[len(ids) - length :] for ids, _ in filled], device=input_ids.device)
        old = input_ids.clone()
        for row, (keep, (ids, _)) in enumerate(zip(kept, filled, strict=True)):
            old[row, keep] = torch.tensor(ids[: len(ids) - length], device=old.device)
        return torch.cat([old, new], dim=1)

    return decoding


def with_block(rule: str, block: int | None) -> str:
    """The specification of a rule that goes block by block."""
    return rule if block is None else f"{rule}{',' if ':' in rule else ':'}block={block}"


def _family(network: Any) -> Family:
    """The facts of a network; refuses one that is none of `transformers`, or by its class no masked language model."""
    who, config = type(network).__name__, getattr(checked_network(network), "config", None)
    if config is None:
        raise PairmiError(f"generate: expected a network of transformers, got {who}; a backbone of your own decodes by pairmi.decode")
    from transformers import MODEL_FOR_MASKED_LM_MAPPING

    family, masked = family_of(config.model_type, who), MODEL_FOR_MASKED_LM_MAPPING.get(type(config), ())
    if family is MASKED_LM and type(network).__module__.startswith("transformers.") and not isinstance(network, masked):
        raise PairmiError(f"generate: expected a masked language model, got {who}; load one by transformers.AutoModelForMaskedLM")
    return family


def _translation(network: Any, tokenizer: Any) -> Translation:
    """How the tokens of a network are ours, by the facts of its family; the caller's tokenizer stays as it is."""
    family, kind = _family(network), type(tokenizer).__name__
    if not callable(tokenizer) or not callable(getattr(tokenizer, "get_vocab", None)):
        raise PairmiError(f"generate: expected a tokenizer of transformers, got {kind}; load it by transformers.AutoTokenizer")
    return translate(copy.deepcopy(tokenizer), kind, family, network.config)


def _completed(
    network: Any,
    translation: Translation,
    prompts: Sequence[list[int]],
    length: int,
    ends: int | None,
    head: str | Path | None,
    decoder: Decoder,
) -> list[tuple[list[int], Result]]:
    """Prompts and completions in the tokenizer's ids; `length` masks are put behind each prompt, `ends` may be written there."""
    if length < 0:
        raise PairmiError(f"generate: length must be >= 0 tokens, got {length}")
    canvases = [[*ids, *[translation.mask] * length] for ids in prompts]
    for place, ids in enumerate(canvases):
        if translation.mask not in ids:
            raise PairmiError(f"generate: nothing is unknown in prompt {place}; write mask tokens where text is missing, or give length=N")
    usable = set(translation.ids.values())
    added = {} if ends is None or ends in usable else {f"<end {ends}>": ends}
    given = sorted({i for ids in canvases for i in ids} - usable - {translation.mask, ends})  # special tokens inside a prompt, say
    extended = replace(translation, ids={**translation.ids, **added, **{f"<given {i}>": i for i in given}})
    backbone = held(network, extended, _family(network))
    model = Model(backbone, type(network).__name__, longest=backbone.longest)
    model = model if head is None else with_head(model, head)
    if given:
        model = replace(model, backbone=_never(model.backbone, len(extended.ids) - len(given)))
    tokens = [extended.ours(torch.tensor([*extended.before, *ids, *extended.after])) for ids in canvases]
    back = [*extended.ids.values()]
    return [([back[token] for token in result.tokens.tolist()], result) for result in decoder(model, tokens)]


def _never(backbone: Backbone, usable: int) -> Wrapped:
    """The backbone without the symbols from `usable` on, which may be given and are never predicted."""

    def call(tokens: Tokens) -> Prediction:
        prediction = backbone(tokens)
        barred: Bool[Tensor, " V"] = torch.arange(backbone.vocab.size, device=tokens.device) >= usable
        log_probs = prediction.log_probs.masked_fill(barred, -torch.inf).log_softmax(-1)
        return replace(prediction, log_probs=log_probs)

    return Wrapped(backbone, call)
