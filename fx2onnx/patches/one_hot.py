"""Masks of bytes, and `one_hot` without a number of classes, rewritten as calls that torch.export supports."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..compat import trees as pytree
from ..compat.exporting import check_all_values, check_condition
from ..compat.operators import native_nn
from .registry import register_context

ONE_HOT = native_nn.one_hot


@register_context(
    "one_hot",
    "torch.nn.functional.one_hot",
    "torch.Tensor.__getitem__",
    reason="torch.export refuses one_hot() without a number of classes, and an index of bytes",
)
class MasksAndClasses(TorchFunctionMode):
    """Converts masks of bytes to booleans, and replaces `one_hot` without a number of classes by a comparison with all numbers."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Make the call, or an equivalent one."""
        kwargs = kwargs or {}
        if func is torch.Tensor.__getitem__:
            return func(args[0], pytree.tree_map_only(torch.Tensor, _convert_to_bool, args[1]))
        if func is ONE_HOT and _classes(*args, **kwargs) == -1:
            return _infer_classes(args[0])
        return func(*args, **kwargs)


def _convert_to_bool(index: torch.Tensor) -> torch.Tensor:
    return index != 0 if index.dtype == torch.uint8 else index


def _classes(tensor: torch.Tensor, num_classes: Any = -1) -> Any:
    return num_classes


def _infer_classes(values: torch.Tensor) -> torch.Tensor:
    """Return a tensor with one more axis, whose size is the largest value plus one."""
    check_all_values(values >= 0)
    classes = (values.max() + 1).item()
    check_condition(classes >= 1)
    return (values.unsqueeze(-1) == torch.arange(classes, device=values.device)).to(torch.int64)
