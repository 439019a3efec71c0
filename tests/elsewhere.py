"""A stand-in for a GPU where there is none: tensors that say they are on another device, and keep their numbers on the CPU.

Everything is really computed, so that whole training steps run; but what a GPU would refuse, tensors of two devices in one
operation, is refused. Fake tensors are no way: a torch without CUDA aborts in the backward pass of one that says "cuda". So the
device is "lazy", which autograd knows everywhere and for which there are no kernels.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

HERE, DEVICE = torch.device("cpu"), "lazy"
ATEN = torch.ops.aten
WAITING = {
    ATEN._local_scalar_dense.default,
    ATEN.nonzero.default,
    ATEN.is_nonzero.default,
    ATEN.equal.default,
    ATEN.masked_select.default,
    ATEN._unique2.default,
    ATEN.unique_dim.default,
    ATEN.unique_consecutive.default,
    ATEN.repeat_interleave.Tensor,
}  # whose result, or its size, the host must know
MOVING = {ATEN._to_copy.default, ATEN.copy_.default, ATEN.to.device, ATEN.to.dtype_layout}
INDEXING = {ATEN.index.Tensor, ATEN.index_put.default, ATEN.index_put_.default, ATEN._index_put_impl_.default}


WAITED: list[str] = []  # every time that the host had to wait for the device


class There(Tensor):
    """A tensor over there."""

    @staticmethod
    def __new__(cls, numbers: Tensor) -> "There":
        layout = {"strides": numbers.stride(), "storage_offset": numbers.storage_offset()}
        with torch.inference_mode(False):  # torch wants to count the versions of a view even there
            return torch.Tensor._make_wrapper_subclass(cls, numbers.shape, dtype=numbers.dtype, device=DEVICE, **layout)

    def __init__(self, numbers: Tensor) -> None:
        self.numbers = numbers

    def tolist(self) -> Any:
        WAITED.append("tolist")
        return self.numbers.tolist()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        return _run(func, args, kwargs or {})


class Elsewhere(TorchDispatchMode):
    """While it is entered, `device=DEVICE` means this stand-in."""

    def __enter__(self) -> "Elsewhere":
        torch._C._set_only_lift_cpu_tensors(True)  # `torch.tensor` makes its tensor here and then asks us to move it
        return super().__enter__()

    def __exit__(self, *what: Any) -> None:
        super().__exit__(*what)
        torch._C._set_only_lift_cpu_tensors(False)

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        return _run(func, args, kwargs or {})


def _run(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """One operation, with its result where torch would put it."""
    leaves = tree_leaves((args, kwargs))
    asked = [leaf for leaf in leaves if isinstance(leaf, torch.device)]
    there = asked[0] != HERE if asked else any(isinstance(leaf, There) for leaf in leaves)
    if func not in MOVING:
        _refuse_mixtures(func, args, kwargs)
    if _waits(func, args, leaves, asked):
        WAITED.append(str(func))
    plain = tree_map_only(There, lambda tensor: tensor.numbers, (args, dict(kwargs)))
    plain_args, plain_kwargs = tree_map_only(torch.device, lambda _: HERE, plain)
    out = func(*plain_args, **plain_kwargs)
    if func._schema.name.endswith("_") and not func._schema.name.endswith("__"):
        return args[0]  # in place
    return tree_map_only(Tensor, There, out) if there else out


def _waits(func: Any, args: Sequence[Any], leaves: Sequence[Any], asked: Sequence[torch.device]) -> bool:
    """Whether the host must wait for the device: to know a number, a size, or to have a tensor here."""
    if not any(isinstance(leaf, There) for leaf in leaves):
        return False
    if func in MOVING:
        return bool(asked and asked[0] == HERE) or (func is ATEN.copy_.default and not isinstance(args[0], There))
    masks = func in INDEXING and any(isinstance(leaf, Tensor) and leaf.dtype == torch.bool for leaf in tree_leaves(args[1]))
    return func in WAITING or masks


def _refuse_mixtures(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """As CUDA does: a single number may come from the CPU into pointwise operations, indices into indexing; nothing else may."""
    written = args[0] if func._schema.is_mutable else None
    looked_at = [args[0], *args[2:]] if func in INDEXING and isinstance(args[0], There) else [args, kwargs]
    numbers_pass = torch.Tag.pointwise in func.tags or func in INDEXING
    devices = {
        type(leaf) is There
        for leaf in tree_leaves(looked_at)
        if isinstance(leaf, Tensor) and (type(leaf) is There or leaf.ndim or not numbers_pass or leaf is written)
    }
    if len(devices) > 1:
        raise RuntimeError(f"{func}: expected all tensors to be on the same device")
