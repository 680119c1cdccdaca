"""`len` of a tensor, which torch.export answers with the number of the example."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch


@contextmanager
def lengths_kept() -> Iterator[None]:
    """Let `len` of a tensor, while it lasts, be the size of its first axis, also where that is dynamic."""
    plain = builtins.len

    def length(value: Any, /) -> Any:
        size = value.shape[0] if isinstance(value, torch.Tensor) and value.dim() else None
        return size if isinstance(size, torch.SymInt) else plain(value)

    with patch.object(builtins, "len", length):
        yield
