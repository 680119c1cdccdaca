"""Copies of modules, for runs that must not change the original."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import torch
from torch.overrides import TorchFunctionMode

from .patches.registry import apply_patches, register_context

Copied = TypeVar("Copied")


@register_context("copies", "torch.Tensor.__deepcopy__", reason="torch refuses to copy a tensor that was computed from others")
class _WithoutGraphs(TorchFunctionMode):
    """Copies a tensor that was computed from others by its values, because `copy.deepcopy` refuses it."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") == "__deepcopy__" and not args[0].is_leaf:
            tensor, memo = args
            memo[id(tensor)] = values = tensor.detach().clone()
            return values
        return func(*args, **(kwargs or {}))


def copied_whole(value: Copied, memo: dict[int, Any] | None = None) -> Copied:
    """Return a deep copy of a value. Tensors in it that were computed from others are copied by their values.

    `torch.nn.utils.weight_norm` stores such a tensor in its module, as does a model that keeps a result of its last call.
    """
    with apply_patches("copies"):
        return copy.deepcopy(value, memo)


def copy_sharing_parameters(module: Copied) -> Copied:
    """Return a copy of a module with separate buffers and attributes; the parameters are shared with the original."""
    assert isinstance(module, torch.nn.Module)
    return copied_whole(module, {id(parameter): parameter for parameter in module.parameters()})
