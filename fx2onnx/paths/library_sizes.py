"""Choose further sizes to run, at which a guard in an installed library has another outcome."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import sympy
from torch import nn

from ..guards.guard_origin import is_in_library
from ..guards.witnesses import fails, sizes_near
from ..libraries import TORCH, is_in, is_library_file
from ..trace.size_domain import SizeAssignment, SizeDomain

SMALL = range(1, 9)
LARGEST = 256  # `open_guards` checks a single axis at larger sizes, without a run


def asked_by_libraries(axes: SizeDomain) -> Iterator[SizeAssignment]:
    """Yield for each guard of an installed library, and each axis in it, a setting with another outcome.

    Libraries test `size > 1` without consequences, so these guards do not fork unless such a run makes other calls.
    """
    tests = [guard.expr for guard in axes.environment.guards if is_in_library(guard.sloc)]
    for test in dict.fromkeys(tests):
        for symbol in sorted(test.free_symbols & set(axes.example), key=str):
            if (setting := _other_side(test, symbol, axes)) is not None:
                yield setting


def is_of_library(model: nn.Module) -> bool:
    """Return whether a submodule's class is from an installed library other than torch."""
    files = {getattr(sys.modules.get(kind.__module__), "__file__", None) or "" for kind in {type(part) for part in model.modules()}}
    return any(is_library_file(file) and not is_in(file, TORCH) for file in files)


def _other_side(test: sympy.Basic, symbol: sympy.Symbol, axes: SizeDomain) -> SizeAssignment | None:
    """Return sizes longer than the example's at which this axis alone makes a test fail; None if none was found."""
    longer = axes.longer()
    sizes = (*SMALL, *longer.values(), *(size for size in sizes_near(test) if size <= LARGEST))
    tried = (axes.clamp({**longer, symbol: size}) for size in sizes)
    return next((setting for setting in tried if fails(test, setting)), None)
