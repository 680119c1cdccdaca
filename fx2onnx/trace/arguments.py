"""Check the arguments of a run: tensors with dynamic dimensions, and other values, which become constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from numbers import Number
from typing import Any

import torch
from torch import nn
from torch.export import Dim

from ..compat import trees as pytree
from ..guards.dims import is_hint
from .refusal import TraceUnsupported

PLAIN = (torch.dtype, torch.device, torch.layout, torch.memory_format, slice, range, Enum, nn.Module)
SUPPORTED = (torch.Tensor, Number, str, type(None), *PLAIN)  # other objects may contain tensors, which would become constants


def check_arguments(leaves: Sequence[Any], numbers: Sequence[str], dynamic_shapes: Any) -> None:
    """Refuse arguments that traced runs do not support.

    Args:
        leaves: the leaves of the arguments.
        numbers: the names of those that are dynamic numbers.

    Raises:
        TraceUnsupported: If an argument is not supported.
    """
    if numbers:
        raise TraceUnsupported(f"{', '.join(numbers)}: a dynamic number as an input is supported only by torch.export")
    if any(is_hint(leaf, Dim.AUTO) for leaf in pytree.tree_leaves(dynamic_shapes)):
        raise TraceUnsupported("Dim.AUTO is supported only by torch.export, which decides what axes are dynamic")
    if odd := [leaf.layout for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.layout != torch.strided]:
        raise TraceUnsupported(f"an argument is a tensor of layout {odd[0]}; only strided tensors are supported")
    if unknown := [type(leaf).__qualname__ for leaf in leaves if not _is_supported(leaf)]:
        raise TraceUnsupported(f"an argument is a {unknown[0]}, which is not registered as a pytree")


def _is_supported(leaf: Any) -> bool:
    """Whether a leaf is a tensor, or certainly contains none."""
    parts = [getattr(leaf, field.name) for field in fields(leaf)] if is_dataclass(leaf) and not isinstance(leaf, type) else []
    settings = bool(parts) and not any(isinstance(part, torch.Tensor) or not isinstance(part, SUPPORTED) for part in parts)
    return isinstance(leaf, SUPPORTED) or settings
