"""`pairmi train`."""

import argparse


def run(options: argparse.Namespace) -> None:
    """`pairmi train`."""
    from pairmi.training.run import train_head, train_tables

    {"head": train_head, "tables": train_tables}[options.what](options)
