"""`pairmi design`."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from tqdm import tqdm

from pairmi import api
from pairmi.backbones.proteinmpnn import ProteinMPNN
from pairmi.commit import Sampling
from pairmi.loading import load
from pairmi.model import Model
from pairmi.tasks.protein.scaffold import Scaffold, read_scaffold
from pairmi.types import PairmiError, Tokens


def run(options: argparse.Namespace) -> None:
    """`pairmi design`: the native sequence first, then the designs, as FASTA."""
    scaffold = read_scaffold(options.structure, options.chain)
    model = load("proteinmpnn", structure=options.structure, chain=options.chain, head=options.head)
    fixed = sorted({position for part in options.fix for position in scaffold.find(part)})
    if len(fixed) == len(scaffold.text):
        raise PairmiError(f"--fix {' '.join(options.fix)}: every residue of {options.structure} is fixed, nothing is left to design")
    api.resolve(options.rule, model)  # refuse what cannot be before anything is written
    Sampling(options.seed, options.temperature)
    native = model.vocab.encode(scaffold.text)
    designed = torch.ones(len(native), dtype=torch.bool)
    designed[fixed] = False
    canvas, network = native.masked_fill(designed, model.vocab.size), cast(ProteinMPNN, model.backbone)
    score = float(sequential_scores(network, native[None], designed)[0])
    with open(options.out, "w") if options.out else nullcontext(sys.stdout) as file:
        print(record(scaffold, "native", scaffold.text, f"score={score:.4f} designed={int(designed.sum())}"), end="", file=file)
        bar = tqdm(total=options.count, desc="design", unit="sequence", file=sys.stderr, disable=None)
        for numbers in torch.arange(options.count).split(options.batch):
            for name, text, about in _designs(model, canvas, native, designed, numbers.tolist(), options):
                print(record(scaffold, name, text, about), end="", file=file, flush=True)
                bar.update()
        bar.close()


def _designs(
    model: Model, canvas: Tensor, native: Tensor, designed: Tensor, numbers: list[int], options: argparse.Namespace
) -> Iterator[tuple[str, str, str]]:
    """Number, sequence and what is to be said of it, of a batch."""
    drawn: dict[str, Any] = {name: getattr(options, name) for name in ("seed", "temperature", "greedy", "verify")}
    outs = api.decode(model, [canvas] * len(numbers), options.rule, **drawn, batch_size=options.batch, index=numbers)
    scores = sequential_scores(cast(ProteinMPNN, model.backbone), torch.stack([out.tokens for out in outs]), designed)
    for number, out, score in zip(numbers, outs, scores.tolist(), strict=True):
        recovery = float((out.tokens == native)[designed].double().mean())
        about = f"score={score:.4f} recovery={recovery:.4f} passes={out.passes} rows={out.rows} seed={options.seed}"
        yield str(number + 1), out.text, about


def sequential_scores(network: ProteinMPNN, tokens: Tokens, designed: Bool[Tensor, " L"]) -> Float[Tensor, " B"]:
    """The mean over designed residues of -log p(x_i | the fixed ones and the designed ones before it), in nats: one row each."""
    order = torch.arange(len(designed)) + len(designed) * designed
    with torch.inference_mode():
        log_probs = network.in_order(tokens, order.expand_as(tokens)).log_probs.double()
    return -log_probs.gather(2, tokens[:, :, None])[:, designed, 0].mean(1)


def record(scaffold: Scaffold, name: str, text: str, about: str) -> str:
    """A sequence as FASTA: one record a chain, with the name of the chain where there are several."""
    chains = scaffold.split(text)
    several = len(chains) > 1
    return "".join(f">{scaffold.name}-{name}{f'_{chain}' if several else ''} {about}\n{part}\n" for chain, part in chains.items())
