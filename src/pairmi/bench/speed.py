"""What a pass costs beside the backbone: time and memory of every rule, in units that do not depend on the machine."""

import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from pairmi.backbones.transformer import Transformer, TransformerConfig
from pairmi.commit import Sampling
from pairmi.decoding import iter_decode
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import looks_at_pairs
from pairmi.types import Meter, PairMatrix, Places, Prediction, RowStreams, Selector, Tokens, Vocab

SHAPE = TransformerConfig(width=260, depth=5, heads=4)  # 4.1 M parameters: the size of the paper's Sudoku model
PASSES = 4  # of a decoding that are measured
# Settings in which a rule fills several positions a pass, also where probabilities are random
BUSY: dict[str, dict[str, Any]] = {"top-k": {"k": 8}, "eb": {"budget": 40.0}, "threshold": {"threshold": 0.02}, "factor": {"factor": 9.0}}
BUSY["mi-guided"] = {"budget": 40.0}


@dataclass(frozen=True)
class Given:
    """A matrix that is already there, so that the rule alone is measured."""

    matrix: PairMatrix

    def __call__(self, prediction: Prediction, backbone: Meter, rng: RowStreams) -> PairMatrix:
        """The given matrix."""
        return self.matrix[: len(prediction.tokens)]


class Ready:
    """A backbone that computes nothing: each of its answers is a fresh copy of the same log-probabilities, as a network would give."""

    def __init__(self, log_probs: Tensor, vocab: Vocab) -> None:
        self.log_probs, self.vocab, self.length = log_probs, vocab, log_probs.shape[0]
        self.seconds = 0.0

    def __call__(self, tokens: Tokens) -> Prediction:
        """One pass, timed."""
        return self._answer(tokens, lambda: self.log_probs.expand(len(tokens), -1, -1).clone())

    def at(self, tokens: Tokens, places: Places) -> Prediction:
        """The same of some positions, as masked language models can give them."""
        return self._answer(tokens.gather(1, places), lambda: self.log_probs[places])

    def _answer(self, tokens: Tokens, read: Callable[[], Tensor]) -> Prediction:
        start = time.process_time()
        log_probs = read()
        hidden = log_probs.new_zeros(*tokens.shape, 1)
        self.seconds += time.process_time() - start
        return Prediction(tokens, log_probs, hidden)


class Peak(TorchDispatchMode):
    """While it is entered, the most bytes that live in tensors made meanwhile."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.most = 0
        self._seen: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """One operation; what it makes is counted until it is dropped."""
        out = func(*args, **(kwargs or {}))
        old = {x.untyped_storage()._cdata for x in tree_iter((args, kwargs)) if isinstance(x, Tensor)}
        for made in tree_iter(out):
            if isinstance(made, Tensor) and made.untyped_storage()._cdata not in old | self._seen:
                self._count(made.untyped_storage())
        return out

    def _count(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        self._seen.add(key)
        self.now += size
        self.most = max(self.most, self.now)
        weakref.finalize(storage, self._drop, key, size)

    def _drop(self, key: int, size: int) -> None:
        self._seen.discard(key)
        self.now -= size


def seconds(work: Callable[[], object]) -> float:
    """CPU time of one call, of all threads: what else runs on the machine does not count."""
    start = time.process_time()
    work()
    return time.process_time() - start


def rules(batch: int, length: int, rng: torch.Generator) -> dict[str, Selector]:
    """Every rule, those that look at pairs with a random matrix."""
    shared = torch.rand(batch, length, length, generator=rng, dtype=torch.float64) ** 8
    given = Given(((shared + shared.transpose(1, 2)) / 2) * (1 - torch.eye(length)))
    return {name: rule(*([given] if looks_at_pairs(name) else []), **BUSY.get(name, {})) for name, rule in CATALOGUE.items()}


def decoding_costs(symbols: int, length: int, batch: int, rounds: int = 3) -> Iterator[dict[str, Any]]:
    """For every rule, plain and verified: time beside the backbone in log-softmaxes of one prediction, peak memory in predictions.

    Time is that of the first passes over unknown canvases, less that of the backbone, over their number; softmax and decoding are timed
    alternately. Memory counts all tensors that live at once, the backbone's answers included.
    """
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(length, symbols, generator=rng) * (1 + 3 * torch.rand(length, 1, generator=rng))
    backbone = Ready(logits.log_softmax(-1), Vocab(tuple(map(str, range(symbols))), "_"))
    tokens, whole = torch.full((batch, length), symbols), logits.expand(batch, -1, -1).contiguous()
    softmaxes = [seconds(lambda: whole.log_softmax(-1)) for _ in range(rounds)]  # of the whole run: one may meet large pages, or not
    for name, selector in rules(batch, length, rng).items():
        for verify in (False, True):
            sampling, spent = Sampling(1, verify=verify), list[float]()
            _spent(backbone, tokens, selector, sampling)  # warm
            for _ in range(rounds):
                spent.append(_spent(backbone, tokens, selector, sampling))
                softmaxes.append(seconds(lambda: whole.log_softmax(-1)))
            with Peak() as peak:
                _spent(backbone, tokens, selector, sampling)
            beside, softmax, prediction = median(spent), median(softmaxes), 4 * batch * length * symbols
            costs = {"beside_ms": 1e3 * beside, "softmax_ms": 1e3 * softmax, "softmaxes": beside / softmax}
            costs |= {"predictions": peak.most / prediction, "symbols": symbols, "length": length, "batch": batch}
            yield {"rule": name, "verified": verify} | costs


def _spent(backbone: Ready, tokens: Tokens, selector: Selector, sampling: Sampling) -> float:
    """Seconds a pass beside the backbone, over the first passes; under verification its calls are passes too."""
    backbone.seconds, start, passes = 0.0, time.process_time(), 0
    for number, step in enumerate(iter_decode(backbone, tokens, selector, sampling), 1):
        passes = int(step.passes.max())
        if number == PASSES:
            break
    return (time.process_time() - start - backbone.seconds) / passes


def selection_times(batch: int = 256, rounds: int = 5) -> Iterator[dict[str, Any]]:
    """For every rule, on fully masked 9x9 boards (the worst case): all that a pass costs beside the backbone, as a share of the pass."""
    rng = torch.Generator().manual_seed(0)
    model, size = Transformer(SHAPE).eval(), len(SHAPE.symbols)
    tokens = torch.full((batch, SHAPE.length), size)
    logits = torch.randn(SHAPE.length, size, generator=rng) * torch.rand(SHAPE.length, 1, generator=rng) * 8
    backbone = Ready(logits.log_softmax(-1), model.vocab)
    with torch.no_grad():
        model(tokens)
        for name, selector in rules(batch, SHAPE.length, rng).items():
            _spent(backbone, tokens, selector, Sampling(1))
            times = [(_spent(backbone, tokens, selector, Sampling(1)), seconds(lambda: model(tokens))) for _ in range(rounds)]
            beside_ms, pass_ms = (1e3 * median(some) for some in zip(*times, strict=True))
            share = median(beside / one for beside, one in times)
            yield {"rule": name, "beside_ms": beside_ms, "pass_ms": pass_ms, "share": share, "batch": batch}
