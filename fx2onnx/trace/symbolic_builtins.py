"""Let Python's built-in functions return expressions for symbolic sizes, instead of plain numbers."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any

import sympy
import torch

from ..compat.shape_env import ShapeEnv
from ..compat.symbols import FloatTrueDiv, OpaqueUnaryFn_exp, OpaqueUnaryFn_log, ToFloat
from ..ir.expressions import expression
from ..patches.registry import apply_patches, register_context, register_patch
from . import symbolic_sizes  # noqa: F401 - it is entered
from .plan import Plan
from .refusal import restart
from .source_location import is_within_torch
from .symbolic_scalars import ScalarProxy
from .tracer import Tracer

SYMBOLS = (torch.SymInt, torch.SymFloat)
PLAIN = tuple(f"torch.{kind}.__{name}__" for kind in ("SymInt", "SymFloat") for name in ("int", "float"))
TORCH_S_OWN = re.compile(r"torch$|torch\.(?!nn\b)|sympy\b")  # modules that expect a number from a symbol
COMPARISONS = ("__gt__", "__ge__", "__lt__", "__le__", "__eq__", "__ne__")
NO_SIZES = re.compile(r"must be bool, not SymBool|got \(.*\bSymBool\b")  # torch's errors for a comparison of sizes, the second until 2.10
WITH_FLOATS = ("mul", "rmul", "add", "radd", "sub", "rsub", "truediv", "rtruediv")


@contextmanager
def symbolic_builtins(tracer: Tracer, environment: ShapeEnv, plan: Plan) -> Iterator[None]:
    """Make sizes symbolic, with `len`, `divmod` and functions of `math` that keep expressions, and with what the plan keeps."""
    with ExitStack() as stack:
        stack.enter_context(apply_patches("tracked_sizes", "python_numbers", tracer=tracer, environment=environment))
        for names in plan.size_modules:
            stack.enter_context(apply_patches("python_types", names=names, others={"int": Int, "float": Float}))
        stack.enter_context(apply_patches("comparisons") if plan.decides_comparisons else nullcontext())
        yield


@register_patch(
    "comparisons",
    *(f"torch.SymInt.{name}" for name in COMPARISONS),
    reason="some functions of torch accept a bool, but not a comparison of sizes",
    issue="pytorch#154038",
)
def _wrap_comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A comparison that becomes a guard immediately if the model's own code makes it."""

    def decided(self: Any, other: Any) -> Any:
        found = compare(self, other)
        return bool(found) if isinstance(found, torch.SymBool) and not is_within_torch(sys._getframe(1).f_code.co_filename) else found

    return decided


@contextmanager
def symbolic_int(modules: Sequence[dict[str, Any]]) -> Iterator[None]:
    """Let `int` in these modules keep the number or size that represents an element of a tensor."""
    with ExitStack() as stack:
        for names in modules:
            stack.enter_context(apply_patches("python_types", names=names, others={"int": Int}))
        yield


def int_as_item(tensor: torch.Tensor) -> Any:
    """Return `item()` of a tensor with one integer, and other tensors unchanged."""
    is_whole = tensor.numel() == 1 and tensor.dtype != torch.bool and not tensor.is_floating_point() and not tensor.is_complex()
    return tensor.item() if is_whole else tensor


@register_context("python_types", "int and float in modules of the model", reason="they convert sizes and tensors to Python numbers")
@contextmanager
def _override_names(names: dict[str, Any], others: dict[str, Any]) -> Iterator[None]:
    """Override names of a module, and keep its other assignments."""
    before = {name: names[name] for name in others if name in names}
    names.update(others)
    try:
        yield
    finally:
        for name in others:
            del names[name]
        names.update(before)


_register = partial(register_patch, "python_numbers", reason="it converts a dynamic size to a Python number")


@_register("builtins.len")
def _length_of(plain: Callable[[Any], int]) -> Callable[[Any], Any]:
    return lambda x, /: x.shape[0] if isinstance(x, torch.Tensor) and x.shape else plain(x)


@_register("builtins.divmod")
def _divmod_of(plain: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b, /: (a // b, a % b) if isinstance(a, SYMBOLS) or isinstance(b, SYMBOLS) else plain(a, b)


@_register("math.sqrt")
def _root_of(plain: Callable[..., Any]) -> Callable[..., Any]:
    return _dispatch_on_size(plain, lambda x: x**0.5)


@_register("math.log")
def _log_of(plain: Callable[..., Any], environment: ShapeEnv) -> Callable[..., Any]:
    return _dispatch_on_size(plain, lambda x: _opaque(environment, OpaqueUnaryFn_log, plain, x))


@_register("math.exp")
def _exp_of(plain: Callable[..., Any], environment: ShapeEnv) -> Callable[..., Any]:
    return _dispatch_on_size(plain, lambda x: _opaque(environment, OpaqueUnaryFn_exp, plain, x))


def _dispatch_on_size(plain: Callable[..., Any], of_size: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda *args: of_size(args[0]) if len(args) == 1 and isinstance(args[0], SYMBOLS) else plain(*args)


def _opaque(environment: ShapeEnv, function: Any, plain: Callable[[float], float], size: Any) -> Any:
    argument = expression(size)
    real = ToFloat(argument) if isinstance(size, torch.SymInt) else argument
    return environment.create_symfloatnode(function(real), hint=plain(size.node.hint))


@register_patch("python_numbers", *PLAIN, creates=True, reason="it converts a dynamic size to a Python number, and the run ends there")
def _end_run(plain: Callable[[Any], Any] | None, name: str, tracer: Tracer) -> Callable[[Any], Any]:
    def end(self: Any) -> Any:
        names = sys._getframe(1).f_globals
        if plain is not None and TORCH_S_OWN.match(names.get("__name__", "")):
            return plain(self)
        raise restart(tracer, f"{name.strip('_')}() converts a dynamic size to a Python number", partial(Plan.keep_sizes, module=names))

    return end


@register_patch(
    "python_numbers",
    *(f"torch.SymFloat.__{name}__" for name in WITH_FLOATS),
    reason="sympy merges two factors, which rounds differently from Python",
)
def _make_float_operation(plain: Callable[[Any, Any], Any], environment: ShapeEnv) -> Callable[[Any, Any], Any]:
    """Return a float operation whose operands are evaluated one after the other."""

    def operation(self: torch.SymFloat, other: Any) -> Any:
        return plain(_isolate_float(self, environment), _isolate_float(other, environment) if isinstance(other, torch.SymFloat) else other)

    return operation


def _isolate_float(number: torch.SymFloat, environment: ShapeEnv) -> torch.SymFloat:
    value = expression(number)
    if not isinstance(value, (sympy.Add, sympy.Mul)) or not value.atoms(sympy.Float):
        return number
    isolated: Any = environment.create_symfloatnode(FloatTrueDiv(value, sympy.Float(1.0)), hint=number.node.hint)
    return isolated


class _BuiltinMeta(type):
    """A class that passes for a builtin type, which sizes are instances of in eager."""

    symbol: type

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, (*cls.__bases__, cls.symbol))

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.__bases__)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other in cls.__bases__

    def __hash__(cls) -> int:
        return hash(cls.__bases__[0])


class Int(int, metaclass=_BuiltinMeta):
    """`int` that keeps the expression of a size and the proxy of a tensor element."""

    symbol = torch.SymInt

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return the result of `int`, or an expression."""
        if len(args) == 1 and isinstance(args[0], SYMBOLS):
            return args[0] if isinstance(args[0], torch.SymInt) else math.trunc(args[0])
        number = int_as_item(args[0]) if len(args) == 1 and isinstance(args[0], torch.Tensor) else next(iter(args), None)
        is_read = len(args) == 1 and isinstance(args[0], torch.Tensor) and type(number) is int
        stands_for_it = isinstance(number, torch.SymInt) or (type(number) is ScalarProxy and number.__class__ is int)
        return number if stands_for_it or is_read else int(*args, **kwargs)


class Float(float, metaclass=_BuiltinMeta):
    """`float` that keeps the expression of a size."""

    symbol = torch.SymFloat

    def __new__(cls, *args: Any) -> Any:
        """Return the result of `float`, or an expression."""
        if args and isinstance(args[0], SYMBOLS):
            return torch.sym_float(args[0])
        return float(*args)
