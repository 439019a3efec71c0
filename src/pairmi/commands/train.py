"""`pairmi train`."""

import argparse

import torch


def run(options: argparse.Namespace) -> None:
    """`pairmi train`."""
    from pairmi.training.run import train_head, train_tables

    if options.threads:
        torch.set_num_threads(options.threads)
    {"head": train_head, "tables": train_tables}[options.what](options)
