"""The decorators that register translations, and the table of the registered ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, TypeVar

from ..ir.translation import Translation

TARGETS, OF_PAIRS, OF_QUANTIZED = "__translates__", "__translates_pairs__", "__takes_quantized__"
Function = TypeVar("Function", bound=Translation)


def translates(*targets: Any) -> Callable[[Function], Function]:
    """Register a function `f(g, *args, **kwargs)` as the translation of these operators: overloads, or Python functions.

    The function is called with the graph under construction and the arguments of the operator. Tensors are passed as `Tensor`, symbolic
    numbers as sympy expressions, everything else as captured. Its results are cast to the captured dtype.
    """

    def mark(function: Function) -> Function:
        setattr(function, TARGETS, targets)
        return function

    return mark


def translates_complex(*targets: Any) -> Callable[[Function], Function]:
    """Register a function as the translation of calls with complex tensors, which are passed and returned as `ComplexPair`."""

    def mark(function: Function) -> Function:
        setattr(function, OF_PAIRS, targets)
        return function

    return mark


def takes_quantized(function: Function) -> Function:
    """Mark a translation that accepts or returns tensors of torch's quantised types as `Quantized`."""
    setattr(function, OF_QUANTIZED, True)
    return function


def table_of(modules: Iterable[ModuleType], marked: str = TARGETS) -> dict[Any, Translation]:
    """Return the translations in these modules by operator: the functions with the attribute `marked`.

    Raises:
        ValueError: two functions translate one operator.
    """
    table: dict[Any, Translation] = {}
    for module in modules:
        for function in vars(module).values():
            for target in getattr(function, marked, ()):
                if table.setdefault(target, function) is not function:
                    raise ValueError(f"{target} is translated twice: by {table[target].__name__} and by {function.__name__}")
    return table
