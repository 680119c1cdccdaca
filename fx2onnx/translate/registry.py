"""Which function translates which operator: the decorator that says so, and the table of what modules say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, TypeVar

from ..ir.translation import Translation

TARGETS, OF_PAIRS, OF_QUANTIZED = "__translates__", "__translates_pairs__", "__takes_quantized__"
Function = TypeVar("Function", bound=Translation)


def translates(*targets: Any) -> Callable[[Function], Function]:
    """Say that a function `f(g, *args, **kwargs)` translates these operators: overloads, or Python functions.

    It is called with the graph under construction and the arguments of the operator: tensors as `Tensor`, symbolic numbers as sympy
    expressions, everything else as captured. What it returns is cast to the dtype that the capture says.
    """

    def mark(function: Function) -> Function:
        setattr(function, TARGETS, targets)
        return function

    return mark


def translates_complex(*targets: Any) -> Callable[[Function], Function]:
    """Say that a function translates calls of these operators that take or give complex tensors, each of which it has as a `Pair`."""

    def mark(function: Function) -> Function:
        setattr(function, OF_PAIRS, targets)
        return function

    return mark


def takes_quantized(function: Function) -> Function:
    """Say that a translation takes or gives tensors of torch's quantised types, each of which it has as a `Quantized`."""
    setattr(function, OF_QUANTIZED, True)
    return function


def table_of(modules: Iterable[ModuleType], marked: str = TARGETS) -> dict[Any, Translation]:
    """Return the translations in these modules by operator: those that are `marked` so.

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
