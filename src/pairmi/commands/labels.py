"""`pairmi labels`."""

import argparse

import torch

from pairmi.backbones.checkpoint import ensure_writable
from pairmi.commands.engine import chosen_engine, loading_device
from pairmi.mi.probe import Probe
from pairmi.spec import Model, load
from pairmi.tasks.protein.fasta import read_proteins
from pairmi.tasks.protein.residues import speaks_protein
from pairmi.training.labels import Effort, make_labels
from pairmi.training.protein_states import ProteinStates
from pairmi.training.states import States, SudokuStates
from pairmi.types import PairmiError


def run(options: argparse.Namespace) -> None:
    """`pairmi labels`."""
    if options.threads:
        torch.set_num_threads(options.threads)
    number, _, of = options.part.partition("/")
    if not (number.isdigit() and of.isdigit()):
        raise PairmiError(f"--part {options.part}: expected K/N, such as 0/2")
    ensure_writable(options.out, "labels: --out")
    engine, model = chosen_engine(options), load(options.backbone, device=loading_device(options), precision=options.precision)
    make_labels(
        model,
        drawn_from(model, options),
        options.out,
        options.states,
        seed=options.seed,
        probe=Probe(options.form, options.floor, options.batch),
        effort=Effort(options.positions, options.only),
        shard=options.shard,
        part=(int(number), int(of)),
        engine=engine,
    )


def drawn_from(model: Model, options: argparse.Namespace) -> States:
    """Where the states of this kind of model come from."""
    if model.conflict is not None:
        return SudokuStates()
    if not speaks_protein(model.vocab):
        raise PairmiError(f"labels: {options.backbone} is no 9x9 Sudoku model and none of proteins; states can be drawn for these only")
    if options.data is None:
        raise PairmiError(f"labels: {options.backbone} is a model of proteins and needs --data FILE, a FASTA file")
    return ProteinStates(read_proteins(options.data, model.longest))
