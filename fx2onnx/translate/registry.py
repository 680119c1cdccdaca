"""Which function translates which operator: the decorator that fills the table, and the look-up. Not here: the translations."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

Translation = Callable[..., Any]
TARGETS = "__translates__"


def translates(*targets: Any) -> Callable[[Translation], Translation]:
    """Says that a function `f(g, *args, **kwargs)` translates these operators: overloads, or Python functions.

    It is called with the graph under construction and the arguments of the operator: tensors as `Tensor`, symbolic numbers as sympy
    expressions, everything else as captured. What it returns is cast to the dtype that the capture says.
    """

    def mark(function: Translation) -> Translation:
        setattr(function, TARGETS, targets)
        return function

    return mark


@cache
def own_translations() -> Mapping[Any, Translation]:
    """All translations of the modules in `ops/`.

    Raises:
        ValueError: two functions translate one operator.
    """
    from .. import ops

    table: dict[Any, Translation] = {}
    for module in pkgutil.iter_modules(ops.__path__):
        for function in vars(importlib.import_module(f"{ops.__name__}.{module.name}")).values():
            for target in getattr(function, TARGETS, ()):
                if table.setdefault(target, function) is not function:
                    raise ValueError(f"{target} is translated twice: by {table[target].__name__} and by {function.__name__}")
    return table
