"""Whatever a user gives as a canvas becomes tokens here, checked: text or token ids, one or many."""

import warnings
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload, runtime_checkable

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from pairmi.backbones.masked_lm import MaskedLM
from pairmi.backbones.text import Text
from pairmi.model import Model, innermost
from pairmi.types import Backbone, PairmiError, Vocab

Options = ParamSpec("Options")
Found = TypeVar("Found")


@runtime_checkable
class OneOrMany(Protocol[Options, Found]):
    """A function of a canvas, and then its result is one, or of a list of them, and then it is a list."""

    @overload
    def __call__(self, model: Backbone, canvas: str, *args: Options.args, **options: Options.kwargs) -> Found: ...
    @overload
    def __call__(self, model: Backbone, canvas: list[Any], *args: Options.args, **options: Options.kwargs) -> list[Found]: ...
    @overload
    def __call__(self, model: Backbone, canvas: Any = ..., *args: Options.args, **options: Options.kwargs) -> Any: ...


def one_or_many(function: Callable[Concatenate[Any, Any, Options], tuple[list[Found], bool]]) -> OneOrMany[Options, Found]:
    """The function whose result is one where just one was asked for; it says itself whether that was so."""

    @wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        found, single = function(*args, **options)
        return found[0] if single else found

    called.__signature__ = signature(function).replace(return_annotation=Any)  # type: ignore[attr-defined]
    return called


def tokenise(model: Backbone, canvas: Any, name: str = "canvas", complete: bool = False) -> Int[Tensor, " L"]:
    """One canvas as tokens on the CPU, checked: right length, known symbols, something to fill (or nothing), no contradiction."""
    size, longest = model.vocab.size, model.longest if isinstance(model, Model) else None
    tokens = _read(model.vocab, model.vocab.stripped(canvas), name) if isinstance(canvas, str) else _vector(canvas, name)
    if not len(tokens):
        raise PairmiError(f"{name}: empty; expected {f'{model.length} positions' if model.length else 'at least one position'}")
    if model.length is not None and len(tokens) != model.length:
        raise PairmiError(f"{name}: expected {model.length} positions, got {len(tokens)}")
    if longest is not None and len(tokens) > longest:
        raise PairmiError(f"{name}: {len(tokens)} positions are too many for this model; at most {longest}; cut the sequence")
    if int(tokens.min()) < 0 or int(tokens.max()) > size:
        raise PairmiError(f"{name}: token ids must be 0..{size} ({size} = unknown), got {int(tokens.min())}..{int(tokens.max())}")
    unknown = torch.nonzero(tokens == size)[:, 0].tolist()
    if complete and unknown:
        raise PairmiError(f"{name}: position {unknown[0] + 1} is unknown; a map is of a complete sequence: fill it first (pairmi.decode)")
    if not complete and not unknown:
        raise PairmiError(f"{name}: every position is given, nothing is unknown; {_remedy(model, tokens)}")
    complaint = model.task.conflict(tokens) if isinstance(model, Model) else None
    if complaint is not None:
        raise PairmiError(f"{name}: contradiction: {complaint}")
    return tokens


def _read(vocab: Vocab, text: str, name: str) -> Int[Tensor, " L"]:
    """The tokens of a text; a warning where they are those of another one, but for spaces, as of a tokenizer without capitals."""
    tokens = vocab.encode(text, name)
    if vocab.tokenizer is not None and "".join((read := vocab.decode(tokens)).split()) != "".join(text.split()):
        warnings.warn(f"{name}: the tokenizer of this model reads it as {read!r}", stacklevel=3)
    return tokens


def continuation(model: Backbone, prompt: Any, new_tokens: int, chat: bool = False, name: str = "prompt") -> Int[Tensor, " L"]:
    """A text and as many unknown positions behind it; with `chat` the text is a question, put as the model's chat template does."""
    if not isinstance(prompt, str):
        raise PairmiError(f"{name}: expected a string, got {type(prompt).__name__}")
    if new_tokens < 1:
        raise PairmiError(f"{name}: new_tokens={new_tokens}: must be at least 1")
    vocab, longest = model.vocab, model.longest if isinstance(model, Model) else None
    if chat:
        if not isinstance(vocab.tokenizer, Text):
            raise PairmiError(f"{name}: chat=True is for text models; this one has no tokenizer")
        prompt = vocab.tokenizer.chat(prompt)
    given = _read(vocab, prompt, name)
    if longest is not None and len(given) + new_tokens > longest:
        raise PairmiError(f"{name}: {len(given)} tokens and {new_tokens} new ones are too many for this model; at most {longest} in all")
    return tokenise(model, torch.cat([given, torch.full((new_tokens,), vocab.size)]), name)


def symbol_id(vocab: Vocab, symbol: str | int, name: str) -> int:
    """The id of a symbol that is given by its id, its name or its text."""
    if isinstance(symbol, int):
        found = [symbol]
    else:
        found = [vocab.symbols.index(symbol)] if symbol in vocab.symbols else vocab.encode(symbol, name).tolist()
    if len(found) != 1 or not 0 <= found[0] < vocab.size:
        raise PairmiError(f"{name}: expected one symbol, or its id from 0 to {vocab.size - 1}, got {symbol!r}, which is {len(found)}")
    return int(found[0])


def _vector(canvas: Any, name: str) -> Int[Tensor, " L"]:
    """Token ids in whatever form they came."""
    if isinstance(canvas, Tensor):
        tokens = canvas.detach().cpu()
    elif isinstance(canvas, np.ndarray) and canvas.dtype.kind in "iufb":
        tokens = torch.as_tensor(canvas)
    elif isinstance(canvas, list | tuple | range) and all(isinstance(x, int) and abs(x) < 2**63 for x in canvas):
        tokens = torch.tensor(list(canvas), dtype=torch.long)
    else:
        raise PairmiError(f"{name}: expected a string or a vector of token ids, got {type(canvas).__name__}")
    if tokens.ndim != 1 or tokens.is_floating_point() or tokens.is_complex() or tokens.dtype == torch.bool:
        raise PairmiError(f"{name}: expected a string or a vector of token ids, got {list(tokens.shape)} of {tokens.dtype}")
    return tokens.long()


def _remedy(model: Backbone, tokens: Tensor) -> str:
    """How to mark unknown positions; and whether these look like ids of the model's own tokenizer, which mean other symbols here."""
    inner = innermost(model)
    if isinstance(inner, MaskedLM) and bool((tokens == inner.translation.mask).any()):
        return (
            f"ids of the model's own tokenizer (its mask is {inner.translation.mask}) are not pairmi's (the mask is {model.vocab.size}); "
            "translate them: model.backbone.translation.ours(ids)"
        )
    return f"mark unknown positions with '{model.vocab.blank}', or with token id {model.vocab.size}"


def checked_model(model: Any) -> Backbone:
    """Whatever can be asked for predictions."""
    if isinstance(model, str):
        raise PairmiError(f"model: expected a loaded model, got the name {model!r}; load it first: pairmi.load({model!r})")
    if not isinstance(model, Backbone):
        of_transformers = isinstance(model, nn.Module) and getattr(model, "config", None) is not None
        how = "; pairmi.generate(model, tokenizer, prompts), or save_pretrained(folder), the tokenizer's too, and pairmi.load(folder)"
        said = f"model: expected a backbone (vocab, length, __call__(tokens) -> Prediction), got {type(model).__name__}"
        raise PairmiError(said + (how if of_transformers else ""))
    inner = model.backbone if isinstance(model, Model) else model
    if isinstance(inner, type):
        raise PairmiError(f"model: expected a backbone, got the class {inner.__name__}; give one of it: {inner.__name__}(...)")
    if not isinstance(model.vocab, Vocab):
        who, got = type(inner).__name__, type(model.vocab).__name__
        raise PairmiError(f"{who}: expected vocab to be a Vocab, got {got}; pairmi.types.Vocab(symbols) makes one")
    return model


def many(model: Backbone, canvas: Any, complete: bool = False) -> tuple[list[Int[Tensor, " L"]], bool]:
    """A list of checked canvases, and whether it was just one."""
    flat = isinstance(canvas, Tensor | np.ndarray) and canvas.ndim == 1
    ids = isinstance(canvas, list | tuple) and len(canvas) > 0 and all(isinstance(x, int) for x in canvas)
    single = isinstance(canvas, str) or flat or ids
    if not single and not isinstance(canvas, list | tuple | Tensor | np.ndarray):
        raise PairmiError(f"canvases: expected a string, token ids or a list of these, got {type(canvas).__name__}")
    canvases = [canvas] if single or (isinstance(canvas, Tensor | np.ndarray) and not canvas.ndim) else list(canvas)
    if not canvases:
        raise PairmiError("canvases: expected at least one, got none")
    what = "sequence" if complete else "canvas"
    names = [what] if single else [f"{what} {n}" for n in range(len(canvases))]
    return [tokenise(model, one, name, complete) for one, name in zip(canvases, names, strict=True)], single
