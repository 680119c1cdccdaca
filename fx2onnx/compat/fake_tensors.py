"""Tensors without values, their mode, and the function that reads a value from a tensor."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._subclasses import FakeTensor, FakeTensorMode, UnsupportedFakeTensorException, fake_impls
from torch._subclasses.fake_tensor import in_kernel_invocation_manager, unset_fake_temporarily

__all__ = [
    "READ_OF_A_VALUE",
    "DirectKernelMode",
    "FakeTensor",
    "FakeTensorMode",
    "UnsupportedFakeTensorException",
    "unset_fake_temporarily",
]

READ_OF_A_VALUE: types.CodeType = fake_impls.local_scalar_dense.__code__  # the code that `item()` of a fake tensor ends in

aten = torch.ops.aten
DIRECT = {  # views and a layer in place, which return one tensor
    *(aten.view.default, aten.expand.default, aten.t.default, aten.transpose.int, aten.permute.default),
    *(aten.slice.Tensor, aten.select.int, aten.unsqueeze.default, aten.squeeze.dim, aten.relu_.default),
}


class DirectKernelMode(FakeTensorMode):
    """A mode for tensors without symbolic sizes, which calls the kernels of views directly. FakeTensorMode needs three times as long."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Call an operator."""
        if func not in DIRECT or not isinstance(args[0], FakeTensor):
            return super().__torch_dispatch__(func, types, args, kwargs or {})
        with in_kernel_invocation_manager(self):
            result = func(*args, **(kwargs or {}))
        return result if result is args[0] else FakeTensor(self, result, args[0].fake_device)
