"""Running a module as it is, on copies, so that neither it nor its arguments change."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

from .cases import Sample


def fresh(module: nn.Module) -> nn.Module:
    """Return a copy of the module with buffers and attributes of its own; parameters are shared, not copied.

    Raises:
        TypeError: something that it holds cannot be copied, as a lock or an open file; the error names it.
    """
    shared = {id(p): p for p in module.parameters()}
    try:
        return copy.deepcopy(module, dict(shared))
    except TypeError as error:
        held = _not_copied(module, shared)
        raise TypeError(f"{held} cannot be copied ({error}), so the module cannot be run without changing it: set that aside") from error


def _not_copied(module: nn.Module, shared: dict[int, Any]) -> str:
    """Return where in the module the first attribute is that cannot be copied, as `Model.layer.lock`."""
    for path, part in module.named_modules(prefix=type(module).__name__):
        for name, value in vars(part).items():
            try:
                copy.deepcopy(value, {**shared, **{id(child): child for child in part.children()}})
            except TypeError:
                return f"{path}.{name}"
    return type(module).__name__


def copied(sample: Sample) -> Sample:
    """Return a deep copy of the arguments; a tensor that was computed from others is copied without what it was computed from."""
    computed = [leaf for leaf in sample.leaves() if isinstance(leaf, torch.Tensor) and not leaf.is_leaf]
    return copy.deepcopy(sample, {id(tensor): tensor.detach().clone() for tensor in computed})


def last_returned(callee: Callable[..., Any], calls: Sequence[Sample]) -> Any:
    """Return what the last of these calls returns, in inference mode; each gets copies, since a module may write into its inputs."""
    with torch.inference_mode():
        results = [callee(*s.args, **s.kwargs) for s in map(copied, calls)]
    return results[-1]


def uncompiled() -> AbstractContextManager[Any]:
    """Return a block in which what `torch.compile` wrapped runs as it was written: compiling each copy of a model would take minutes."""
    return torch.compiler.set_stance("force_eager")


def called_once(module: nn.Module, sample: Sample) -> Any:
    """Return what a copy of the module returns for copies of these arguments, in inference mode."""
    return last_returned(fresh(module), (sample,))
