"""`self.part.to(dtype)` in a forward has no effect if the part already has that dtype, as in eager mode."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from itertools import chain
from typing import Any

import torch
from torch import nn

from ..compat.operators import native_nn
from ..errors import CaptureError, line_at
from .registry import apply_patches, register_patch

DTYPES = {"to": None, "float": torch.float32, "double": torch.float64, "half": torch.float16, "bfloat16": torch.bfloat16}


def allow_harmless_casts(model: nn.Module) -> AbstractContextManager[None]:
    """Let `to`, `float` and similar methods return the module itself if they change none of its tensors.

    Raises:
        CaptureError: a cast would change a parameter or buffer of the model, which is constant in the exported model.
    """
    return apply_patches("module_to", held={id(tensor) for tensor in _tensors(model)})


@register_patch(
    "module_to",
    *(f"torch.nn.Module.{name}" for name in DTYPES),
    reason="torch.export would swap the parameters of a submodule that forward casts, even if nothing changes",
)
def _cast(own: Callable[..., nn.Module], name: str, held: Collection[int]) -> Callable[..., nn.Module]:
    dtype = DTYPES[name]

    def cast(module: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
        if _changes_nothing(module, *(args if dtype is None else (dtype,)), **kwargs):
            return module
        if any(id(tensor) in held for tensor in _tensors(module)):
            raise _refusal(module, line_at(sys._getframe(1)))
        try:
            return own(module, *args, **kwargs)
        except RuntimeError as error:
            if "swap" not in str(error):
                raise
            raise _refusal(module, line_at(sys._getframe(1))) from error

    return cast


def _refusal(module: nn.Module, line: str) -> CaptureError:
    return CaptureError(f"forward casts or moves a {type(module).__name__} of the model at {line}: do this before the export")


def _tensors(module: nn.Module) -> Iterator[torch.Tensor]:
    return chain(module.parameters(), module.buffers())


def _changes_nothing(module: nn.Module, *args: Any, **kwargs: Any) -> bool:
    device, dtype, _, memory_format = native_nn._parse_to(*args, **kwargs)
    if memory_format is not None:
        return False
    cast = (tensor for tensor in _tensors(module) if tensor.is_floating_point() or tensor.is_complex())
    return all(dtype in (None, tensor.dtype) for tensor in cast) and all(device in (None, tensor.device) for tensor in _tensors(module))
