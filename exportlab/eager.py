"""Run a module in eager mode on copies, so that neither the module nor its arguments change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

from fx2onnx.compat import trees as pytree
from fx2onnx.copies import copied_whole as copied_whole
from fx2onnx.copies import copy_sharing_parameters

from .cases import Sample


def fresh(module: nn.Module) -> nn.Module:
    """Return a copy of the module with its own buffers and attributes; the parameters are shared.

    Raises:
        TypeError: an attribute cannot be copied, such as a lock or an open file; the message names it.
    """
    try:
        return copy_sharing_parameters(module)
    except Exception as error:
        attribute = _not_copied(module)
        raise TypeError(
            f"{attribute} cannot be copied ({error}), so running the module could change it. Remove this attribute before the call"
        ) from error


def _not_copied(module: nn.Module) -> str:
    """Return the path of the module's first attribute that cannot be copied, such as `Model.layer.lock`."""
    shared: dict[int, Any] = {id(p): p for p in module.parameters()}
    for path, part in module.named_modules(prefix=type(module).__name__):
        for name, value in vars(part).items():
            try:
                copied_whole(value, {**shared, **{id(child): child for child in part.children()}})
            except Exception:  # noqa: BLE001 - any error while copying identifies the attribute
                return f"{path}.{name}"
    return type(module).__name__


def copy_sample(sample: Sample) -> Sample:
    """Return a deep copy of the arguments. Tensors are copied without their autograd history."""
    return copied_whole(sample)


def run_calls(callee: Callable[..., Any], calls: Sequence[Sample]) -> Any:
    """Return the result of the last of these calls, without gradients. Each call gets copies, since a module may modify its inputs.

    This uses `torch.no_grad` and not `torch.inference_mode`, because a module may compute gradients under `torch.enable_grad`.
    """
    with torch.no_grad():
        results = [callee(*s.args, **s.kwargs) for s in map(copy_sample, calls)]
    return pytree.tree_map_only(torch.Tensor, _detach, results[-1])


def _detach(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach() if tensor.requires_grad else tensor


def disable_compile() -> AbstractContextManager[Any]:
    """Return a context manager that disables `torch.compile`, since compiling each copy of a model would take minutes."""
    return torch.compiler.set_stance("force_eager")


def called_once(module: nn.Module, sample: Sample) -> Any:
    """Call a copy of the module with copies of these arguments, without gradients, and return the result."""
    return run_calls(fresh(module), (sample,))
