"""Training in several processes at once: each takes a part of every batch, and what they found is summed."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, distributed

T = TypeVar("T")


@dataclass(frozen=True)
class Processes:
    """This process among all that train together; by default it is alone."""

    rank: int = 0
    count: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process writes files and measures."""
        return self.rank == 0

    def mine(self, pieces: Sequence[T]) -> list[T]:
        """The part of a batch's pieces that this process takes."""
        return list(pieces[self.rank :: self.count])

    def total(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes, in one exchange."""
        if self.count == 1:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        distributed.all_reduce(flat)
        for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))


@contextmanager
def together() -> Iterator[Processes]:
    """All processes that torchrun started (nccl for tensors on GPUs, gloo for others), or this one alone."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Processes()
        return
    distributed.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield Processes(distributed.get_rank(), count)
        distributed.barrier()  # nobody leaves before the leader has written everything
    finally:
        distributed.destroy_process_group()
