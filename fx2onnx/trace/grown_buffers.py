"""Refuse replaced buffers, except a longer table that begins with the old one and does not change the next call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import nn

from ..compat.dispatch import DisableTorchFunction, disable_current_modes
from .hidden_state import Arguments, answers_alike
from .refusal import TraceUnsupported
from .tracer import Tracer

ALLOW_GROWN_BUFFERS: ContextVar[dict[str, torch.Tensor] | None] = ContextVar("longer", default=None)  # by name


@contextmanager
def allow_grown_buffers(model: nn.Module, call: Arguments) -> Iterator[None]:
    """Let runs replace a buffer by a longer one that begins with it, and check on exit that this does not change the next call.

    Raises:
        TraceUnsupported: If it does.
    """
    longer: dict[str, torch.Tensor] = {}
    token = ALLOW_GROWN_BUFFERS.set(longer)
    try:
        yield
    finally:
        ALLOW_GROWN_BUFFERS.reset(token)
    if longer and not answers_alike(model, call, longer):
        raise TraceUnsupported(f"the model makes {', '.join(longer)} longer, and this changes the result of the next call")


def check_buffers(model: nn.Module, before: Mapping[str, torch.Tensor], tracer: Tracer) -> None:
    """Refuse a replaced buffer, unless the new one begins with the old one, is longer, and depends only on sizes and weights.

    Raises:
        TraceUnsupported: If there is one.
    """
    for name, tensor in model.named_buffers(remove_duplicate=False):
        if name not in before or before[name] is tensor:
            continue
        longer = ALLOW_GROWN_BUFFERS.get()
        with DisableTorchFunction(), disable_current_modes():  # these reads are not tests of the model
            is_longer = tracer.constness.depends_on_sizes(tensor, tracer.ref(tensor)) is not None and _begins_with(tensor, before[name])
            if longer is None or not is_longer:
                raise TraceUnsupported(f"the model replaces its buffer {name}")
            if name not in longer or tensor.numel() > longer[name].numel():
                longer[name] = tensor


def _begins_with(longer: torch.Tensor, table: torch.Tensor) -> bool:
    """Whether a tensor is larger than a table and begins with the same values, up to rounding."""
    fits = longer.dtype == table.dtype and longer.dim() == table.dim() and longer.numel() > table.numel()
    if not fits or any(size > place for size, place in zip(table.shape, longer.shape, strict=True)):
        return False
    return torch.allclose(longer[tuple(map(slice, table.shape))], table, rtol=1e-5, atol=1e-6, equal_nan=True)
