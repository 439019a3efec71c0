"""Labels for a table head: the true conditionals of every open position while a rule's sets are filled one position at a time."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from tqdm import tqdm

from pairmi.backbones.checkpoint import ensure_writable, load_tensors, save_tensors
from pairmi.backbones.identity import identify
from pairmi.counting import Counting
from pairmi.draw import Streams, draw
from pairmi.model import Model, device_of
from pairmi.provenance import provenance
from pairmi.spec import rule
from pairmi.training.states import uniform_masks
from pairmi.types import PairmiError, Selector, Tokens, Turn

RULES = (  # whose sets are filled, in turn
    "mi-bound:budget=1,entropy_weight=0.1",
    "mi-bound:budget=1",
    "mi-bound:budget=0.06,entropy_weight=0.02,penalty=4",
    "mi-bound:budget=3",
    "top-k:k=4",
)
BOARDS = 5_000_000  # where the seeds of these sequences begin: apart from all others
KINDS = (*((spec, 48) for spec in RULES), ("mi-bound:budget=3", 0), ("top-k:k=4,by=random", 0))  # with how many boards; 0 = masked grids
MASKED = 256  # masked grids of a unit, and numbers between the sequences of two
HELD_OUT = 16  # of so many sequences one is for validation


@dataclass(frozen=True)
class Walks:
    """Sets that were filled one by one, and what the model said after each member."""

    tokens: Int[Tensor, "S L"]  # before the set
    order: Int[Tensor, "S L"]  # ranks of its members; -1 = not in it
    filled: Int[Tensor, "S L"]  # after it
    sequence: Int[Tensor, " S"]
    of: Int[Tensor, " N"]  # to which set a row belongs
    rank: Int[Tensor, " N"]  # how many of its members were filled
    log_probs: Float[Tensor, "N L V"]  # what the model then said; half precision

    def held_out(self, sets: Int[Tensor, " K"]) -> Tensor:
        """Whether sets are for validation: all of one sequence are."""
        return self.sequence[sets] % HELD_OUT == 0


def walked(model: Model, tokens: Tokens, selector: Selector, streams: Streams, turns: int) -> Iterator[Walks]:
    """Fill canvases set by set, at most `turns` of them, each member drawn from its conditional; the sets of each turn."""
    meter, mask, state = Counting(model), model.vocab.size, dict[str, Tensor]()
    tokens, number = tokens.to(device_of(model)), torch.arange(len(tokens))
    for turn in range(turns):
        going = torch.nonzero((tokens == mask).any(1))[:, 0]
        if not len(going):
            return
        tokens, number, streams, state = tokens[going], number[going], streams.rows(going), {n: v[going] for n, v in state.items()}
        prediction, rng = meter(tokens), streams.at(turn)
        selection = selector(Turn(prediction, meter, rng, state))
        order, sizes, state = torch.where(selection.chosen, selection.order, -1), selection.chosen.sum(1), dict(selection.state)
        before, ofs, ranks, said = tokens, list[Tensor](), list[Tensor](), list[Tensor]()
        for rank in range(int(sizes.max())):
            some = torch.nonzero(sizes > rank)[:, 0]
            log_probs = meter(tokens[some]).log_probs if rank else prediction.log_probs
            member = (order[some] == rank).long().argmax(1)
            own = log_probs[torch.arange(len(some)), member]
            symbols = draw(own, rng, some, member * mask, "draw")
            tokens = tokens.index_put((some, member), symbols)
            for into, value in ((ofs, some), (ranks, torch.full_like(some, rank)), (said, log_probs.half())):
                into.append(value.cpu())
        yield Walks(before, order, tokens, number, torch.cat(ofs), torch.cat(ranks), torch.cat(said))


def joined_walks(parts: Sequence[Walks]) -> Walks:
    """Several lots as one."""
    starts = torch.tensor([0, *(len(part.tokens) for part in parts)]).cumsum(0).tolist()
    values = {field.name: torch.cat([getattr(part, field.name) for part in parts]) for field in fields(Walks)}
    return Walks(**values | {"of": torch.cat([part.of.long() + start for part, start in zip(parts, starts, strict=False)])})


def unit(model: Model, number: int) -> Walks:
    """The walks of one unit: boards from nothing under the rules in turn, or the first sets of randomly masked grids."""
    spec, boards = KINDS[number % len(KINDS)]
    if boards:
        tokens = torch.full((boards, model.length or 0), model.vocab.size)
    else:
        tokens = torch.stack([state.tokens for state in islice(uniform_masks(MASKED, 7000 + number, number), MASKED)])
    sequence = number * MASKED + torch.arange(len(tokens))
    with torch.no_grad():
        found = joined_walks(list(walked(model, tokens, rule(spec, model), Streams(BOARDS, sequence), tokens.shape[1] if boards else 1)))
    small = {name: getattr(found, name).to(torch.int8) for name in ("tokens", "order", "filled", "rank")}
    return replace(found, **small, sequence=found.sequence.int() + number * MASKED, of=found.of.int())


def make_walks(model: Model, folder: Path, count: int, first: int = 0) -> tuple[Walks, dict[str, Any]]:
    """The walks of `count` units, about 4,000 rows each, from the files in `folder`; those that are missing are made first."""
    if model.task.name != "sudoku" or model.head is None:
        raise PairmiError(f"train tables: {model.name} is no 9x9 Sudoku model with a head; walks are made for these only")
    ensure_writable(folder, "train tables: --labels")
    settings = {"backbone": identify(model), "rules": [spec for spec, _ in KINDS]}
    parts = []
    for number in tqdm(range(first, first + count), desc="walks", unit="unit", file=sys.stderr):
        file = folder / f"unit-{number:04d}.safetensors"
        if not file.is_file():
            made = unit(model, number)
            save_tensors(file, {field.name: getattr(made, field.name) for field in fields(Walks)}, settings | {"provenance": provenance()})
        tensors, about = load_tensors(file)
        if about.get("backbone") != settings["backbone"]:
            raise PairmiError(f"train tables: {file} was made by weights {about.get('backbone')}, not by {settings['backbone']}; remove it")
        parts.append(Walks(**tensors))
    return joined_walks(parts), settings | {"units": count} | ({"first": first} if first else {})
