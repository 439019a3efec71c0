"""`pairmi fit`."""

import argparse

from pairmi.commands.engine import chosen_engine, loading_device
from pairmi.fitting.run import fit
from pairmi.loading import load


def run(options: argparse.Namespace) -> None:
    """`pairmi fit`."""
    engine, model = chosen_engine(options), load(options.backbone, device=loading_device(options), precision=options.precision)
    limit = {"max_loss": options.max_loss, "per": options.per}
    made = fit(model, options.data, options.out, minutes=options.minutes, **limit, seed=options.seed, engine=engine)
    print(f"{options.out}: {made}")
