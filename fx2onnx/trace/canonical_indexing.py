"""Record indexing and `contiguous()` as the model writes them, including the parts that torch skips at the sizes of one run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..patches.registry import apply_patches, register_context

aten = torch.ops.aten
END = 2**63 - 1
MASKS = (torch.bool, torch.uint8)
REPLACED = frozenset((torch.Tensor.contiguous, torch.Tensor.__getitem__, torch.Tensor.__setitem__))
RECORD_CONTIGUOUS_AS_COPY = ContextVar("copies", default=False)  # whether `contiguous()` is recorded as a copy, as it mostly is


@contextmanager
def canonical_calls() -> Iterator[None]:
    """Record slices over a whole axis, assigned values and contiguous copies as the model writes them.

    torch skips a slice over the whole axis, although it may select a part at another size. It also drops leading axes of size 1 of an
    assigned value, and does not copy a tensor that is already contiguous.
    """
    token = RECORD_CONTIGUOUS_AS_COPY.set(True)
    try:
        with apply_patches("as_written"):
            yield
    finally:
        RECORD_CONTIGUOUS_AS_COPY.reset(token)


def are_calls_canonical() -> bool:
    """Return whether `canonical_calls` is active."""
    return RECORD_CONTIGUOUS_AS_COPY.get()


@register_context(
    "as_written",
    "torch.Tensor.__getitem__",
    "torch.Tensor.__setitem__",
    "torch.Tensor.contiguous",
    reason="torch leaves out what does nothing at the sizes of one run",
)
class CanonicalIndexing(TorchFunctionMode):
    """Replaces torch's indexing by numbers, slices, None, `...` and tensors with axes."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Make the call."""
        if func not in REPLACED:
            return func(*args, **kwargs) if kwargs else func(*args)
        if func is torch.Tensor.contiguous and len(args) == 1 and not kwargs:
            return aten.contiguous.default(args[0])
        if func is not torch.Tensor.contiguous:
            index = args[1] if isinstance(args[1], tuple) else (args[1],)
            if all(map(_is_plain, index)):
                return _item(args[0], index) if len(args) == 2 else _set_item(args[0], index, args[2])
        return func(*args, **(kwargs or {}))


def slices_that_may_be_left_out(x: torch.Tensor, index: Any) -> Iterator[tuple[int, Any]]:
    """Yield the axis and the end of each slice `[:end]` that torch skips when the axis is not longer than `end`."""
    if not isinstance(index, tuple) or (are_calls_canonical() and all(map(_is_plain, index))):
        return
    taken, axis = sum(_axes_taken(entry) for entry in index), 0
    for entry in index:
        if isinstance(entry, slice) and isinstance(entry.stop, (int, torch.SymInt)) and not entry.start and entry.step in (None, 1):
            yield axis, entry.stop
        axis += x.dim() - taken if entry is Ellipsis else _axes_taken(entry)


def _is_plain(entry: Any) -> bool:
    if isinstance(entry, slice):
        return not any(isinstance(bound, torch.Tensor) for bound in (entry.start, entry.stop, entry.step))
    if isinstance(entry, torch.Tensor):
        return entry.dim() > 0
    return entry is None or entry is Ellipsis or (isinstance(entry, (int, torch.SymInt)) and not isinstance(entry, bool))


def _item(x: torch.Tensor, index: tuple[Any, ...]) -> torch.Tensor:
    view, tensors = _apply_basic_index(x, index)
    if tensors:
        return aten.index.Tensor(view, tensors)
    return aten.alias.default(x) if view is x else view


def _set_item(x: torch.Tensor, index: tuple[Any, ...], value: Any) -> None:
    view, tensors = _apply_basic_index(x, index)
    if not isinstance(value, torch.Tensor):
        if tensors:
            view[tuple(slice(None) if tensor is None else tensor for tensor in tensors)] = value
        else:
            view.fill_(value)
        return
    value = _squeeze_leading(value, _axes_of_result(view, tensors))
    if tensors:
        aten.index_put_.default(view, tensors, value)
    else:
        view.copy_(value)


def _apply_basic_index(x: torch.Tensor, index: tuple[Any, ...]) -> tuple[torch.Tensor, list[torch.Tensor | None]]:
    """Return the view selected by numbers, slices and None, and the index tensor of each axis (None for an axis without one)."""
    taken = sum(_axes_taken(entry) for entry in index)
    view, tensors = x, list[torch.Tensor | None]()
    for entry in index:
        if isinstance(entry, torch.Tensor):
            tensors.append(entry)
        elif entry is None:
            view = view.unsqueeze(_place(tensors))
            tensors.append(None)
        elif entry is Ellipsis:
            tensors += [None] * (x.dim() - taken)
        elif not isinstance(entry, slice):
            view = view.select(_place(tensors), entry)
        else:
            if entry != slice(None):
                stop = END if entry.stop is None else entry.stop
                view = aten.slice.Tensor(view, _place(tensors), entry.start or 0, stop, 1 if entry.step is None else entry.step)
            tensors.append(None)
    while tensors and tensors[-1] is None:
        tensors.pop()
    return view, tensors


def _axes_taken(entry: Any) -> int:
    if isinstance(entry, torch.Tensor):
        return entry.dim() if entry.dtype in MASKS else 1
    return 0 if entry is None or entry is Ellipsis or isinstance(entry, bool) else 1


def _place(tensors: list[torch.Tensor | None]) -> int:
    """The axis that the next entry indexes."""
    return sum(1 if tensor is None else _axes_taken(tensor) for tensor in tensors)


def _axes_of_result(view: torch.Tensor, tensors: list[torch.Tensor | None]) -> int:
    given = [tensor for tensor in tensors if tensor is not None]
    joined = max((1 if tensor.dtype in MASKS else tensor.dim() for tensor in given), default=0)
    return view.dim() - sum(map(_axes_taken, given)) + joined


def _squeeze_leading(value: torch.Tensor, axes: int) -> torch.Tensor:
    """Remove leading axes of size 1 that the target of an assignment does not have."""
    for _ in range(value.dim() - axes):
        value = value.squeeze(0)
    return value
