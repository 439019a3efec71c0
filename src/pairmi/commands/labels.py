"""`pairmi labels`."""

import argparse

from pairmi.commands.engine import chosen_engine, loading_device
from pairmi.loading import load
from pairmi.spec import probing
from pairmi.training.labels import Effort, make_labels
from pairmi.training.states import States, states_for
from pairmi.training.structures import StructureStates, load_structures
from pairmi.types import PairmiError


def run(options: argparse.Namespace) -> None:
    """`pairmi labels`."""
    number, _, of = options.part.partition("/")
    if not (number.isdigit() and of.isdigit()):
        raise PairmiError(f"--part {options.part}: expected K/N, such as 0/2")
    engine = chosen_engine(options)
    states: States
    if options.structures is not None:
        states = StructureStates(list(load_structures(options.structures).values()))
        model = states.model_of(0)
    else:
        model = load(options.backbone, device=loading_device(options), precision=options.precision)
        states = states_for(model, options.data, options.each)
    probe = probing(options.form, options.floor, options.draws, batch_rows=options.batch)
    how = {"seed": options.seed, "shard": options.shard, "part": (int(number), int(of))}
    make_labels(
        model, states, options.out, options.states, **how, probe=probe, effort=Effort(options.positions, options.only), engine=engine
    )
