"""A mode in which `x.shape` returns symbols with expressions, and reads of values are detected."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from types import CellType, FunctionType
from typing import Any

import sympy
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from ..compat import trees as pytree
from ..compat.dispatch import DispatchKey
from ..compat.operators import OpOverload, native_nn
from ..compat.shape_env import ShapeEnv
from ..errors import first_sentence
from ..guards.decisions import MOST, is_implied
from ..guards.error_text import INSTEAD_OF_NUMPY
from ..ir.expressions import Size, expression
from ..patches.registry import register_context
from .canonical_indexing import slices_that_may_be_left_out
from .effects import RESIZING
from .events import plain
from .refusal import CallSequenceDiverged, NoFallback, restart_keeping_scalars
from .source_location import line_of
from .tracer import Tracer

READS_OF_NUMPY = ("numpy", "__array__", "__dlpack__")
READS = (*READS_OF_NUMPY, "data_ptr", "untyped_storage", "storage", "__deepcopy__", "__reduce_ex__")
COPIES = ("tensor", "as_tensor", "asarray", "new_tensor", "scalar_tensor")
FROM_NUMBERS = (torch.tensor, torch.as_tensor)
aten = torch.ops.aten
INT_ONLY_OPS = {  # their schemas accept integers only, so torch would use the concrete size of this run
    torch.linspace: (aten.linspace.default,),
    torch.logspace: (aten.logspace.default,),
    torch.triu_indices: (aten.triu_indices.default,),
    torch.tril_indices: (aten.tril_indices.default,),
    torch.istft: (aten.istft.default,),
    native_nn.one_hot: (aten.one_hot.default,),
    torch.hann_window: (aten.hann_window.default, aten.hann_window.periodic),
    torch.hamming_window: (aten.hamming_window.default, aten.hamming_window.periodic, aten.hamming_window.periodic_alpha),
    torch.blackman_window: (aten.blackman_window.default, aten.blackman_window.periodic),
    torch.bartlett_window: (aten.bartlett_window.default, aten.bartlett_window.periodic),
    torch.max_pool1d: (aten.max_pool1d.default,),
    torch.max_pool2d: (aten.max_pool2d.default,),
    torch.max_pool3d: (aten.max_pool3d.default,),
    torch.avg_pool1d: (aten.avg_pool1d.default,),
    native_nn.avg_pool2d: (aten.avg_pool2d.default,),
    native_nn.avg_pool3d: (aten.avg_pool3d.default,),
    torch.adaptive_avg_pool1d: (aten.adaptive_avg_pool1d.default,),
    torch.adaptive_max_pool1d: (aten.adaptive_max_pool1d.default,),
    native_nn.adaptive_max_pool2d: (aten.adaptive_max_pool2d.default,),
    native_nn.adaptive_max_pool3d: (aten.adaptive_max_pool3d.default,),
    **{getattr(native_nn, name): (getattr(aten, name).vec,) for name in RESIZING},
}
SET_DATA = torch.Tensor.data.__set__  # type: ignore[attr-defined]
SYMBOLS = (torch.SymInt, torch.SymFloat)
NUMBERS = (int, *SYMBOLS)
BOOLEAN_DISPATCH = F.max_pool1d.__code__
CHECKS = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")


@register_context("tracked_sizes", "torch.Tensor.shape and similar attributes", reason="the sizes of a real tensor are Python numbers")
class SymbolicSizeMode(TorchFunctionMode):
    """Makes dynamic sizes symbols of an environment that records guards, and refuses reads of values outside tensors.

    A torch function written in Python runs without its `__torch_function__` checks, so its own guards on sizes are recorded as well.
    """

    def __init__(self, tracer: Tracer, environment: ShapeEnv) -> None:
        super().__init__()
        self._tracer, self._environment = tracer, environment
        self._within: list[Any] = []  # a method of torch may call another of the same name
        self._special: dict[Any, Callable[..., Any]] = {
            torch.Tensor.shape.__get__: self._shape,  # type: ignore[attr-defined]
            torch.Tensor.size: self._size,
            torch.Tensor.numel: self._numel,
            torch.numel: self._numel,
            torch.Tensor.nelement: self._numel,
            torch.Tensor.__len__: self._length,
            torch.Tensor.stride: self._stride,
            torch.Tensor.nbytes.__get__: self._nbytes,  # type: ignore[attr-defined]
            torch.ops.aten.sym_size.int: self._size,
            torch.ops.aten.sym_numel.default: self._numel,
        }

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Make the call, and check that its result comes from recorded calls."""
        kwargs = kwargs or {}
        if func == SET_DATA:
            raise self._tracer.refusal("the model assigns to .data of a tensor", NoFallback)
        if (special := self._special.get(func)) is not None:
            return special(func(*args, **kwargs), *args, **kwargs)
        if func is torch.Tensor.tolist and not self._tracer.reads:
            raise restart_keeping_scalars(self._tracer, "tolist() reads tensor values")
        if getattr(func, "__name__", "") in READS and isinstance(args[0], torch.Tensor):
            raise self._reads_values(func)
        if func in INT_ONLY_OPS and any(isinstance(leaf, SYMBOLS) for leaf in pytree.tree_leaves((args, kwargs))):
            return self._record_errors(partial(self._call_with_expressions, INT_ONLY_OPS[func]), args, kwargs)
        if func in FROM_NUMBERS and any(isinstance(leaf, SYMBOLS) for leaf in pytree.tree_leaves(args[:1])):
            return self._tensor_from_sizes(func, args, kwargs)
        if func in (torch.Tensor.__getitem__, torch.Tensor.__setitem__):
            self._check_slices(args[0], args[1])
        constants = len(self._tracer.constants)
        out = self._record_errors(func, args, kwargs)
        given = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        created = self._tracer.constants[constants:] if getattr(func, "__name__", "") in COPIES else []
        if given and any(all(tensor is not leaf for leaf in given) for tensor in created):
            raise self._reads_values(func)
        if given and isinstance(out, torch.Tensor) and not self._tracer.knows(out):
            raise self._tracer.refusal(f"{getattr(func, '__name__', func)}() creates a tensor from others outside the traced operators,")
        return out

    def _reads_values(self, func: Any) -> Exception:
        instead = INSTEAD_OF_NUMPY if func.__name__ in READS_OF_NUMPY else ""
        return self._tracer.refusal(f"{func.__name__}() reads tensor values", instead=instead)

    def _tensor_from_sizes(self, func: Any, args: Any, kwargs: Any) -> torch.Tensor:
        """Create the tensor from this run's numbers, and record their expressions."""
        numbers = pytree.tree_map_only(SYMBOLS, lambda size: size.node.hint, args[0])
        self._tracer.made_of = pytree.tree_map(expression, args[0])
        try:
            return func(numbers, *args[1:], **kwargs)
        finally:
            self._tracer.made_of = None

    def _call_with_expressions(self, overloads: Sequence[OpOverload], *args: Any, **kwargs: Any) -> Any:
        """Record the call with symbolic sizes, make it with their numbers, and pass the arguments as torch's dispatcher does."""
        op = next((op for op in overloads if _accepts(op, args, kwargs)), overloads[-1])
        declared = [argument for argument in op._schema.arguments if not argument.kwarg_only]
        positional = [argument.name for argument in declared]
        options: dict[str, Any] = (
            {"device": torch.get_default_device(), "pin_memory": False} if len(positional) < len(op._schema.arguments) else {}
        )
        options |= {name: value for name, value in kwargs.items() if value is not None}
        values = [*args, *(options.pop(argument.name, argument.default_value) for argument in declared[len(args) :])]
        values = [_repeat_for_axes(value, getattr(of, "N", None)) for value, of in zip(values, declared, strict=False)]
        while declared and declared[-1].has_default_value() and plain(values[-1]) == declared[-1].default_value:
            values.pop()
            declared.pop()
        if odd := set(options) - {"dtype", "device", "pin_memory"}:
            raise self._tracer.refusal(f"{op} is called with {', '.join(sorted(odd))} and a dynamic size")
        if "device" in options:
            options["device"] = torch.device(options["device"])
        options = {name: options[name] for name in ("dtype", "device", "pin_memory") if name in options}
        call: Callable[..., Any] = op._get_dispatch(DispatchKey.PreDispatch)  # type: ignore[assignment]
        return call(*values, **options)

    def _record_errors(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Make the call, and record its error in case the model catches it, because that is an implicit guard."""
        try:
            return self._call(func, args, kwargs)
        except Exception as error:
            if not self._within:
                self._tracer.failed = f"{type(error).__name__}: {first_sentence(error)} at {line_of(sys._getframe(1))}"
            raise

    def _call(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func in self._within or not _may_dispatch(func):
            return func(*args, **kwargs)
        self._within.append(func)
        try:
            with self:
                return _skip_torch_function_checks(func)(*args, **kwargs)
        finally:
            self._within.pop()

    def _check_slices(self, x: torch.Tensor, index: Any) -> None:
        """Refuse a slice that torch skips in this run because the axis is shorter, but may not skip at other sizes."""
        for axis, stop in slices_that_may_be_left_out(x, index):
            size, end = self._tracer.sizes(x)[axis], expression(stop)
            if isinstance(size, int) or plain(stop) < x.shape[axis]:
                continue
            if not is_implied(sympy.Le(size, end), dict.fromkeys(size.free_symbols, (1, MOST))):
                raise self._tracer.refusal(
                    f"a slice up to {end} has no effect in this run but may have one at other sizes,", CallSequenceDiverged
                )

    def _number(self, value: int, size: Size) -> Any:
        return value if isinstance(size, int) else self._environment.create_symintnode(size, hint=value)

    def _shape(self, found: torch.Size, tensor: torch.Tensor, *_: Any) -> Any:
        sizes = self._tracer.sizes(tensor)
        return found if all(isinstance(size, int) for size in sizes) else torch.Size(map(self._number, found, sizes))

    def _size(self, found: Any, tensor: torch.Tensor, dim: int | None = None) -> Any:
        return self._shape(tensor.shape, tensor) if dim is None else self._number(found, self._tracer.sizes(tensor)[dim])

    def _numel(self, found: int, tensor: torch.Tensor) -> Any:
        product = sympy.prod(self._tracer.sizes(tensor))
        return self._number(found, product if sympy.sympify(product).free_symbols else int(product))

    def _nbytes(self, found: int, tensor: torch.Tensor) -> Any:
        return self._numel(tensor.numel(), tensor) * tensor.itemsize

    def _length(self, found: int, tensor: torch.Tensor) -> int:
        if not isinstance(self._tracer.sizes(tensor)[0], int):
            raise self._tracer.refusal("len() converts a dynamic size to a Python integer")
        return found

    def _stride(self, found: Any, tensor: torch.Tensor, *_: Any, **__: Any) -> Any:
        if not all(isinstance(size, int) for size in self._tracer.sizes(tensor)):
            raise self._tracer.refusal("stride() of a tensor with dynamic sizes is read")
        return found


def _repeat_for_axes(value: Any, axes: int | None) -> Any:
    """Repeat a number as torch does if the schema has a list, such as `int[2] kernel_size`."""
    if axes is not None and isinstance(value, NUMBERS):
        return [value] * axes
    return list(value) if isinstance(value, tuple) else value


def _accepts(op: OpOverload, args: Any, kwargs: Any) -> bool:
    """Whether an overload accepts these arguments without further required ones."""
    names = [argument.name for argument in op._schema.arguments if not argument.kwarg_only]
    return len(args) <= len(names) and set(kwargs) <= {argument.name for argument in op._schema.arguments} - set(names[: len(args)])


def _may_dispatch(func: Any) -> bool:
    """Whether this is a Python function of torch that checks for `__torch_function__`, or chooses between such functions."""
    return _has_checks(func) or any(map(_has_checks, _chosen_from(func)))


def _has_checks(func: Any) -> bool:
    return isinstance(func, FunctionType) and func.__module__.startswith("torch") and not set(CHECKS).isdisjoint(func.__code__.co_names)


def _chosen_from(func: Any) -> tuple[Any, ...]:
    """The functions between which torch's `boolean_dispatch` chooses, such as pooling with and without indices."""
    is_choice = isinstance(func, FunctionType) and func.__code__ is BOOLEAN_DISPATCH
    return tuple(cell.cell_contents for cell in func.__closure__ or ()) if is_choice else ()


@cache
def _skip_torch_function_checks(func: FunctionType) -> Callable[..., Any]:
    """Return the function with all `__torch_function__` checks false."""
    scope = {**func.__globals__, **{name: lambda *args: False for name in CHECKS if name in func.__globals__}}
    chosen = tuple(CellType(_skip_torch_function_checks(one) if _has_checks(one) else one) for one in _chosen_from(func))
    copied = FunctionType(func.__code__, scope, func.__name__, func.__defaults__, chosen or func.__closure__)
    copied.__kwdefaults__ = func.__kwdefaults__
    return copied
