"""`pairmi train`."""

import argparse

import torch


def run(options: argparse.Namespace) -> None:
    """`pairmi train`."""
    from pairmi.training.run import train_denoiser, train_head

    if options.threads:
        torch.set_num_threads(options.threads)
    (train_head if options.what == "head" else train_denoiser)(options)
