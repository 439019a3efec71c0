"""What a user gives to fit on: sequences in a file or a list, complete or with unknown positions."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from pairmi.canvases import tokenise
from pairmi.model import Model
from pairmi.tasks.protein.fasta import is_fasta, open_text, parse_fasta, read_proteins
from pairmi.tasks.protein.residues import speaks_protein
from pairmi.training.sequences import SequenceStates
from pairmi.training.states import ProteinStates, States, SudokuStates
from pairmi.types import PairmiError

LENGTHS = 4  # of empty canvases, where sequences have many
SHORTEST = 3  # positions that a sequence must have to show dependence beyond a single pair


@dataclass(frozen=True)
class Data:
    """Where states to label come from, canvases that rules are priced on, and some that maps are drawn of."""

    states: States
    canvases: list[Int[Tensor, " _"]]
    shown: list[Int[Tensor, " _"]]
    described: str


def read_data(model: Model, data: str | Path | Sequence[Any] | None) -> Data:
    """Lines or FASTA records of a file, or texts and token ids of a list; a canvas is what has unknown positions, marked as ever.

    Canvases are what is priced; without any, sequences are generated from nothing at the lengths of the complete ones.
    """
    if isinstance(data, str | Path) and speaks_protein(model.vocab) and is_fasta(Path(data)):
        records = read_proteins(Path(data), model.longest, model.vocab.blanks)
        complete, canvases = _sorted(model, [(f"{data}, record {record.name}", record.text) for record in records])
        whole = [record for record in records if len(record.text) >= SHORTEST and not set(record.text) & set(model.vocab.blanks)]
        states: States = ProteinStates(whole) if whole else SequenceStates(complete, canvases)
    elif data is None:
        if model.task.name != "sudoku":
            raise PairmiError(f"fit: model {model.name!r} needs data: a file with one sequence a line, FASTA, or a list of sequences")
        complete, canvases, states = [], [], SudokuStates()
    else:
        named = _read(Path(data)) if isinstance(data, str | Path) else [(f"sequence {n}", one) for n, one in enumerate(data)]
        complete, canvases = _sorted(model, named)
        states = SudokuStates() if model.task.name == "sudoku" else SequenceStates(complete, canvases)
    priced = canvases or _empty(model, complete)
    return Data(states, priced, _shown(model, complete) or priced[:2], f"{len(complete)} sequences and {len(canvases)} canvases")


def _read(file: Path) -> list[tuple[str, str]]:
    """The sequences of a file, with what messages call them."""
    with open_text(file) as lines:
        if is_fasta(file):
            found = [(f"{file}, record {record.name}", record.text) for record in parse_fasta(lines)]
        else:
            found = [(f"{file}, line {n}", line.strip()) for n, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]
    if not found:
        raise PairmiError(f"fit: {file} holds no sequence")
    return found


def _sorted(model: Model, named: Sequence[tuple[str, Any]]) -> tuple[list[Int[Tensor, " _"]], list[Int[Tensor, " _"]]]:
    """The complete sequences, and the canvases with at least two unknown positions; what is too short for either teaches nothing."""
    complete, canvases = list[Int[Tensor, " _"]](), list[Int[Tensor, " _"]]()
    for name, one in named:
        tokens = model.vocab.encode(one, name) if isinstance(one, str) else torch.as_tensor(one, dtype=torch.long)
        unknown = int((tokens == model.vocab.size).sum())
        hidden = tokens if unknown else torch.where((torch.arange(len(tokens)) == 0) & (tokens >= 0), model.vocab.size, tokens)
        tokenise(model, hidden, name)  # right length, known symbols; of a complete sequence one is hidden for it
        if unknown >= 2:
            canvases.append(tokens)
        elif not unknown and len(tokens) >= SHORTEST:
            complete.append(tokens)
    if not complete and not canvases:
        raise PairmiError(
            f"fit: none of {len(named)} sequences has two unknown positions, or is complete with at least {SHORTEST}: nothing can be "
            "filled together; give longer ones, or canvases with more unknown positions"
        )
    return complete, canvases


def _empty(model: Model, complete: Sequence[Int[Tensor, " _"]]) -> list[Int[Tensor, " _"]]:
    """Canvases of which nothing is known, at a few of the lengths."""
    lengths = sorted(len(tokens) for tokens in complete) or [model.length or 0]
    some = dict.fromkeys(lengths[int((n + 0.5) / LENGTHS * len(lengths))] for n in range(LENGTHS))
    return [torch.full((length,), model.vocab.size) for length in some]


def _shown(model: Model, complete: Sequence[Int[Tensor, " _"]]) -> list[Int[Tensor, " _"]]:
    """Two sequences with two of three positions hidden."""
    some = [complete[0], complete[len(complete) // 2]] if len(complete) > 1 else list(complete)
    return [tokens.masked_fill(torch.arange(len(tokens)) % 3 != 0, model.vocab.size) for tokens in some]
