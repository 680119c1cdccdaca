"""Numbers that `item()` reads: compared they are tests of values, given to arithmetic of tensors they are tensors.

Where an integer is used otherwise, a further run reads a size there; all else is refused.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, NoReturn, Protocol

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

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
OF_PYTHON_S_OWN = {*dir(int), *dir(float)}


class Refuses(Protocol):
    """Who is told of a use that no file can have, and knows the values that a file has as they are."""

    def refusal(self, why: str) -> Exception:
        """Return the error, with the line."""

    def number(self, tensor: torch.Tensor) -> Any:
        """Note that Python reads an integer from a tensor, and return it."""

    def is_constant(self, tensor: torch.Tensor) -> bool:
        """Return whether the values of a tensor are the same in every call."""


class ScalarProxy:
    """A number of one run: it stands for the element of a tensor, as that was when it was read."""

    def __init__(self, tensor: torch.Tensor, tracer: Refuses, place: CodeLocation | None) -> None:
        self.tensor = tensor.reshape(()).clone()
        self._tracer, self._place = tracer, place
        self.chosen: dict[int, int | None] = {}  # the place that it has in lists, by their length

    @property  # type: ignore[misc]  # of every object one may set it
    def __class__(self) -> type:
        """What the model takes it for."""
        return float if self.tensor.is_floating_point() else int

    def __getattr__(self, name: str) -> Any:
        """Refuse what a number of Python has; another attribute it has neither."""
        if name in OF_PYTHON_S_OWN and hasattr(self.__class__, name):
            self.refuse(name)
        raise AttributeError(f"{self.__class__.__name__!r} object has no attribute {name!r}")

    def exact(self, other: Any) -> torch.Tensor:
        """Return the tensor as Python holds its element: float64, or int64 where what it is compared with is an integer, too."""
        whole = not self.tensor.is_floating_point() and not isinstance(other, float)
        whole &= not (isinstance(other, ScalarProxy) and other.tensor.is_floating_point())
        return self.tensor.to(torch.int64 if whole else torch.float64)

    def __bool__(self) -> bool:
        return bool(self.tensor != 0)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Take the place of a tensor in arithmetic of floats, where that gives the same."""
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
        """Raise the error for a use of this number, which may be one that a size can have."""
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
    "numbers", "torch.Tensor.item", reason="a comparison of the number is a condition on a value, which a file needs both sides of"
)
class ItemIntercept(TorchFunctionMode):
    """While it lasts, `item()` gives a `Number`; `lines` are those that call it.

    Args:
        sizes: the places at which it gives an integer as a size.
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
        """A slice whose ends are numbers, not tensors."""
        ends = (part.start, part.stop, part.step)
        return slice(*(self._read(end, frame) if isinstance(end, torch.Tensor) and self._has_number(end) else end for end in ends))

    def _has_number(self, tensor: torch.Tensor) -> bool:
        return tensor.dtype != torch.bool and not tensor.is_complex() and not self._tracer.is_constant(tensor)

    def _read(self, tensor: torch.Tensor, frame: Any, is_list: bool = False) -> Any:
        """A number; in the place of a list of them, numbers as they are nested."""
        if is_list and tensor.dim():
            return [self._read(part, frame, is_list) for part in tensor.unbind()]
        place = place_of(frame) if frame is not None else None
        if place in self._sizes and not tensor.is_floating_point():
            return self._tracer.number(tensor)
        self._lines[line_of(frame)] = None
        return ScalarProxy(tensor, self._tracer, place)
