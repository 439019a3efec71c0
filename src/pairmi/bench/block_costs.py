"""What a block costs at a large vocabulary: memory above the network, and time beside it, in units of a full-length log-softmax."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from pairmi import api
from pairmi.backbones.masked_lm import MaskedLM, Settings
from pairmi.backbones.pretrained import library
from pairmi.backbones.translation import Translation
from pairmi.bench.speed import Given, Peak, seconds
from pairmi.commit import Sampling
from pairmi.decoding import iter_decode
from pairmi.model import Model
from pairmi.selectors.mi_bound import MIBound
from pairmi.selectors.wrappers import InBlocks
from pairmi.spec import rule

WIDTH, GIGABYTE = 64, 1e9
COLUMNS = ("what", "rows", "passes", "gigabytes", "core_seconds", "beside_ms_a_row", "softmaxes_a_row")


def random_network(symbols: int, length: int) -> Model:
    """Two layers of width 64 over so many symbols, with random weights."""
    torch.manual_seed(0)
    transformers = library("bench speed --block")
    sizes = {"hidden_size": WIDTH, "intermediate_size": 4 * WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.BertConfig(**sizes, vocab_size=symbols + 1, max_position_embeddings=length, initializer_range=0.3)
    translation = Translation({str(n): n for n in range(symbols)}, symbols, (), ())
    return Model(MaskedLM(transformers.AutoModelForMaskedLM.from_config(config), translation, Settings(device="cpu")), longest=length)


def block_costs(symbols: int, length: int, block: int, draws: int = 2, rounds: int = 3) -> Iterator[dict[str, Any]]:
    """MI of one block by draws, and its decoding by mi-bound, the MI drawn or given: each on one canvas of which nothing is known.

    Memory counts all tensors that live at once, the activations of the network included, its weights not. Beside the network is
    everything but its forward passes, the softmax over the block included; a row is one evaluated sequence. Times are those of
    one core, not on the wall (others may be using it), the least of a few.
    """
    model = random_network(symbols, length)
    network, inside = model.backbone.network, [0.0, 0.0]  # type: ignore[attr-defined]
    network.register_forward_pre_hook(lambda *_: inside.__setitem__(1, time.process_time()))
    network.register_forward_hook(lambda *_: inside.__setitem__(0, inside[0] + time.process_time() - inside[1]))
    tokens = torch.full((1, length), symbols)
    shared = torch.rand(1, block, block, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    given = MIBound(Given((shared + shared.mT) * (1 - torch.eye(block))), budget=5.0)
    softmax = _softmax(length, symbols, rounds)
    works: dict[str, Callable[[], tuple[int, int]]] = {
        f"MI, {draws} draws": lambda: (api.mutual_information(model, tokens[0], draws=draws, block=block).rows, 1),
        f"mi-bound, {draws} draws": lambda: _decoded(model, tokens, rule(f"mi-bound:draws={draws},budget=1,block={block}", model)),
        "mi-bound, MI given": lambda: _decoded(model, tokens, InBlocks(given, block)),
    }
    for name, work in works.items():
        with Peak() as peak:
            work()
        times = []
        for _ in range(rounds):
            inside[0], start = 0.0, time.process_time()
            rows, passes = work()
            spent = time.process_time() - start
            times.append(((spent - inside[0]) / rows, spent))
        beside, spent = min(times)
        found = (name, rows, passes, peak.most / GIGABYTE, spent, 1e3 * beside, beside / softmax)
        yield dict(zip(COLUMNS, found, strict=True)) | {"softmax_ms": 1e3 * softmax, "symbols": symbols, "length": length, "block": block}


def _softmax(length: int, symbols: int, rounds: int) -> float:
    """The seconds that one over a whole prediction takes."""
    whole = torch.randn(1, length, symbols)
    return min(seconds(lambda: whole.log_softmax(-1)) for _ in range(rounds))


def _decoded(model: Model, tokens: torch.Tensor, selector: Any) -> tuple[int, int]:
    """Rows and passes of the first block alone."""
    for step in iter_decode(model, tokens, selector, Sampling(1)):
        spent = int((step.evaluated + step.probe_rows).sum()), int(step.passes.max())
        if int((step.tokens != model.vocab.size).sum()) == selector.block:
            break
    return spent
