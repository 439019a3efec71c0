"""Training in several processes at once: each takes a part of every batch, and what they found is summed."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, distributed

from pairmi.backbones.masked_lm import chosen_device
from pairmi.types import PairmiError

T = TypeVar("T")


@dataclass(frozen=True)
class Processes:
    """This process among all that train together; by default it is alone."""

    rank: int = 0
    count: int = 1
    device: str = "cpu"  # of its networks and of what they are shown; data, tallies and random draws stay on the CPU

    @property
    def leads(self) -> bool:
        """Whether this process writes files and measures."""
        return self.rank == 0

    def mine(self, pieces: Sequence[T]) -> list[T]:
        """The part of a batch's pieces that this process takes."""
        return list(pieces[self.rank :: self.count])

    def total(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes, in one exchange for each device that they are on."""
        if self.count == 1:
            return
        for device in dict.fromkeys(tensor.device for tensor in tensors):  # in the order of the tensors: the same in every process
            here = [tensor for tensor in tensors if tensor.device == device]
            flat = torch.cat([tensor.reshape(-1) for tensor in here])
            distributed.all_reduce(flat)
            for tensor, part in zip(here, flat.split([tensor.numel() for tensor in here]), strict=True):
                tensor.copy_(part.view_as(tensor))


@contextmanager
def together(device: str | None = None) -> Iterator[Processes]:
    """All processes that torchrun started (nccl for tensors on GPUs, gloo for others), or this one alone.

    `device` is "cpu", or "cuda" for a GPU for each process; None = GPUs where there are any.
    """
    count, own = int(os.environ.get("WORLD_SIZE", "1")), _own_device(device)
    if count == 1:
        yield Processes(device=own)
        return
    distributed.init_process_group("gloo" if own == "cpu" else "cpu:gloo,cuda:nccl")
    try:
        yield Processes(distributed.get_rank(), count, own)
        distributed.barrier()  # nobody leaves before the leader has written everything
    finally:
        distributed.destroy_process_group()


def _own_device(name: str | None) -> str:
    """The CPU, or the GPU that has the number of this process on its machine; it becomes the current one."""
    if chosen_device(name).type == "cpu":
        return "cpu"
    number, count = (int(os.environ.get(variable, alone)) for variable, alone in (("LOCAL_RANK", "0"), ("LOCAL_WORLD_SIZE", "1")))
    gpus = torch.cuda.device_count()
    if count > gpus:
        raise PairmiError(
            f"train: {count} processes on this machine need a GPU each, torch sees {gpus}; "
            f"start torchrun with --nproc-per-node {gpus}, or train on the CPU with --device cpu"
        )
    torch.cuda.set_device(number)
    return f"cuda:{number}"
