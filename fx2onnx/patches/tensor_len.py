"""`len` of a tensor stays a dynamic size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .registry import register_patch


@register_patch("tensor_len", "builtins.len", reason="len() of a tensor must be an int, so torch.export makes a constant of a dynamic size")
def _length_of(plain: Callable[[Any], int]) -> Callable[[Any], Any]:
    def length(value: Any, /) -> Any:
        size = value.shape[0] if isinstance(value, torch.Tensor) and value.dim() else None
        return size if isinstance(size, torch.SymInt) else plain(value)

    return length
