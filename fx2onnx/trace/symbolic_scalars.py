"""Proxies for the numbers that `item()` reads: a comparison is a test of a value, and arithmetic with tensors uses a tensor.

For other uses of an integer, a further run reads it as a symbolic size. All remaining uses are refused.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, NoReturn, Protocol

import torch
from torch.overrides import TorchFunctionMode

from ..compat import trees as pytree
from ..patches.registry import register_context
from .plan import Plan
from .refusal import restart
from .source_location import CodeLocation, line_of, outside, place_of

AS_TENSORS = {"mul", "add", "sub", "truediv", "div", "radd", "rmul", "rsub", "clamp", "clamp_min", "clamp_max", "clip", "masked_fill"}
COMPARISONS = ("__gt__", "__ge__", "__lt__", "__le__", "__eq__", "__ne__")
OTHER_USES = (
    *(f"__{side}{name}__" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "divmod") for side in ("", "r")),
    *(
        f"__{name}__"
        for name in ("neg", "pos", "abs", "float", "int", "index", "round", "trunc", "floor", "ceil", "hash", "str", "repr", "format")
    ),
)
MAKERS = (torch.tensor, torch.as_tensor, torch.asarray)
INDEXING = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)
PYTHON_ATTRIBUTES = {*dir(int), *dir(float)}


class Refuses(Protocol):
    """The tracer, as the proxies need it."""

    def refusal(self, why: str) -> Exception:
        """Return the error, with the line."""

    def number(self, tensor: torch.Tensor) -> Any:
        """Record that Python reads an integer from a tensor, and return it."""

    def is_constant(self, tensor: torch.Tensor) -> bool:
        """Return whether the values of a tensor are the same in every call."""


class ScalarProxy:
    """A number that was read from a tensor, represented by a copy of that element."""

    def __init__(self, tensor: torch.Tensor, tracer: Refuses, place: CodeLocation | None) -> None:
        self.tensor = tensor.reshape(()).clone()
        self._tracer, self._place = tracer, place
        self.chosen: dict[int, int | None] = {}  # its index in lists, by their length

    @property  # type: ignore[misc]  # typeshed does not allow a property here
    def __class__(self) -> type:
        """The type that the model sees."""
        return float if self.tensor.is_floating_point() else int

    def __getattr__(self, name: str) -> Any:
        """Refuse the attributes of Python's numbers; others do not exist."""
        if name in PYTHON_ATTRIBUTES and hasattr(self.__class__, name):
            self.refuse(name)
        raise AttributeError(f"{self.__class__.__name__!r} object has no attribute {name!r}")

    def exact(self, other: Any) -> torch.Tensor:
        """Return the tensor with Python's precision: int64 for a comparison of integers, otherwise float64."""
        whole = not self.tensor.is_floating_point() and not isinstance(other, float)
        whole &= not (isinstance(other, ScalarProxy) and other.tensor.is_floating_point())
        return self.tensor.to(torch.int64 if whole else torch.float64)

    def __bool__(self) -> bool:
        return bool(self.tensor != 0)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Use the tensor in float arithmetic for which the result is the same."""
        leaves = pytree.tree_leaves((args, kwargs))
        numbers = [leaf for leaf in leaves if isinstance(leaf, ScalarProxy)]
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        name = getattr(func, "__name__", str(func))
        floats = all(t.is_floating_point() and t.dim() for t in tensors) and all(n.tensor.is_floating_point() for n in numbers)
        if name.strip("_") not in AS_TENSORS or not tensors or not floats:
            numbers[0].refuse(name)
        args, kwargs = pytree.tree_map(lambda leaf: leaf.tensor if isinstance(leaf, ScalarProxy) else leaf, (args, kwargs or {}))
        return func(*args, **kwargs)

    def refuse(self, use: str, is_size: bool = True) -> NoReturn:
        """Raise the error for a use of this number. With `is_size`, a further run may read an integer as a size."""
        why = f"a number is read from a tensor and passed to {use}"
        if is_size and not self.tensor.is_floating_point() and self._place is not None:
            raise restart(self._tracer, why, partial(Plan.read_size, place=self._place))
        raise self._tracer.refusal(why)


def _make_comparison(name: str) -> Callable[[ScalarProxy, Any], Any]:
    def compare(self: ScalarProxy, other: Any) -> Any:
        if isinstance(other, ScalarProxy):
            return bool(getattr(operator, name)(self.exact(other), other.exact(self)))
        if not isinstance(other, (int, float, torch.SymInt, torch.SymFloat)):
            return NotImplemented
        return bool(getattr(operator, name)(self.exact(other), other))

    return compare


def _make_refusal(name: str) -> Callable[..., Any]:
    return lambda self, *args: NotImplemented if any(isinstance(one, torch.Tensor) for one in args) else self.refuse(name)


for name in COMPARISONS:
    setattr(ScalarProxy, name, _make_comparison(name))
for name in OTHER_USES:
    setattr(ScalarProxy, name, _make_refusal(name))


@register_context(
    "numbers", "torch.Tensor.item", reason="a comparison of the number is a condition on a value, which the exported model has to test"
)
class ItemIntercept(TorchFunctionMode):
    """Replaces the result of `item()` by a `ScalarProxy`, and records the calling lines in `lines`.

    Args:
        sizes: the locations at which it returns an integer as a size.
    """

    def __init__(self, tracer: Refuses, lines: dict[str, None], sizes: Collection[CodeLocation]) -> None:
        super().__init__()
        self._tracer, self._lines, self._sizes = tracer, lines, sizes

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Make the call."""
        frame = outside(sys._getframe(1))
        if func in (torch.Tensor.item, torch.Tensor.tolist) and self._has_number(args[0]):
            return self._read(args[0], frame, is_list=func is torch.Tensor.tolist)
        if func in MAKERS and any(type(leaf) is ScalarProxy for leaf in pytree.tree_leaves((args, kwargs))):
            raise self._tracer.refusal(f"{func.__name__}() is called with a number that was read from a tensor,")
        if func in INDEXING:
            args = (args[0], pytree.tree_map_only(slice, partial(self._read_slice_ends, frame), args[1]), *args[2:])
        return func(*args, **(kwargs or {}))

    def _read_slice_ends(self, frame: Any, part: slice) -> slice:
        """Return a slice with numbers instead of tensors."""
        ends = (part.start, part.stop, part.step)
        return slice(*(self._read(end, frame) if isinstance(end, torch.Tensor) and self._has_number(end) else end for end in ends))

    def _has_number(self, tensor: torch.Tensor) -> bool:
        return tensor.dtype != torch.bool and not tensor.is_complex() and not self._tracer.is_constant(tensor)

    def _read(self, tensor: torch.Tensor, frame: Any, is_list: bool = False) -> Any:
        """Return a number, or for `tolist()` a nested list of numbers."""
        if is_list and tensor.dim():
            return [self._read(part, frame, is_list) for part in tensor.unbind()]
        place = place_of(frame) if frame is not None else None
        if place in self._sizes and not tensor.is_floating_point():
            return self._tracer.number(tensor)
        self._lines[line_of(frame)] = None
        return ScalarProxy(tensor, self._tracer, place)
