"""Running a module as it is, on copies, so that neither it nor its arguments change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from fx2onnx.copies import copied_whole as copied_whole
from fx2onnx.copies import with_shared_parameters

from .cases import Sample


def fresh(module: nn.Module) -> nn.Module:
    """Return a copy of the module with buffers and attributes of its own; parameters are shared, not copied.

    Raises:
        TypeError: something that it holds cannot be copied, as a lock or an open file; the error names it.
    """
    try:
        return with_shared_parameters(module)
    except Exception as error:
        held = _not_copied(module)
        raise TypeError(f"{held} cannot be copied ({error}), so the module cannot be run without changing it: set that aside") from error


def _not_copied(module: nn.Module) -> str:
    """Return where in the module the first attribute is that cannot be copied, as `Model.layer.lock`."""
    shared: dict[int, Any] = {id(p): p for p in module.parameters()}
    for path, part in module.named_modules(prefix=type(module).__name__):
        for name, value in vars(part).items():
            try:
                copied_whole(value, {**shared, **{id(child): child for child in part.children()}})
            except Exception:  # noqa: BLE001 - whatever a copy of it raises: this is the attribute that is looked for
                return f"{path}.{name}"
    return type(module).__name__


def copy_sample(sample: Sample) -> Sample:
    """Return a deep copy of the arguments; a tensor that was computed from others is copied without what it was computed from."""
    return copied_whole(sample)


def run_calls(callee: Callable[..., Any], calls: Sequence[Sample]) -> Any:
    """Return what the last of these calls returns, without gradients; each gets copies, since a module may write into its inputs.

    A module may compute gradients itself, under `torch.enable_grad`, which `torch.inference_mode` would not allow.
    """
    with torch.no_grad():
        results = [callee(*s.args, **s.kwargs) for s in map(copy_sample, calls)]
    return pytree.tree_map_only(torch.Tensor, _detach, results[-1])


def _detach(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach() if tensor.requires_grad else tensor


def disable_compile() -> AbstractContextManager[Any]:
    """Return a block in which what `torch.compile` wrapped runs as it was written: compiling each copy of a model would take minutes."""
    return torch.compiler.set_stance("force_eager")


def called_once(module: nn.Module, sample: Sample) -> Any:
    """Return what a copy of the module returns for copies of these arguments, without gradients."""
    return run_calls(fresh(module), (sample,))
