"""Choose further sizes to run, at which a guard in an installed library has another outcome."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import sympy
from torch import nn

from ..guards.decisions import decide
from ..guards.guard_origin import is_in_library
from ..guards.witnesses import LARGEST_RUN, fails, sizes_near
from ..libraries import TORCH, is_in, is_library_file
from ..trace.size_domain import SizeAssignment, SizeDomain

SMALL = range(1, 9)


def asked_by_libraries(axes: SizeDomain) -> Iterator[SizeAssignment]:
    """Yield for each guard of an installed library, and each axis in it, a setting with another outcome.

    Libraries test `size > 1` without consequences, so these guards do not fork unless such a run makes other calls.
    """
    tests = [guard.expr for guard in axes.environment.guards if is_in_library(guard.sloc)]
    for test in dict.fromkeys(tests):
        symbols = sorted(test.free_symbols & set(axes.example), key=str)
        alone = [setting for symbol in symbols if (setting := _other_side(test, symbol, axes)) is not None]
        yield from alone or _other_side_of_several(test, axes)


def is_of_library(model: nn.Module) -> bool:
    """Return whether a submodule's class is from an installed library other than torch."""
    files = {getattr(sys.modules.get(kind.__module__), "__file__", None) or "" for kind in {type(part) for part in model.modules()}}
    return any(is_library_file(file) and not is_in(file, TORCH) for file in files)


def _other_side(test: sympy.Basic, symbol: sympy.Symbol, axes: SizeDomain) -> SizeAssignment | None:
    """Return sizes longer than the example's at which this axis alone makes a test fail; None if none was found."""
    longer = axes.longer()
    alone = test.subs({other: size for other, size in longer.items() if other != symbol})
    sizes = (*SMALL, *longer.values(), *(size for size in (*sizes_near(test), *sizes_near(alone)) if size <= LARGEST_RUN))
    tried = (axes.clamp({**longer, symbol: size}) for size in sizes)
    return next((setting for setting in tried if fails(test, setting)), None)


def _other_side_of_several(test: sympy.Basic, axes: SizeDomain) -> Iterator[SizeAssignment]:
    """Yield sizes at which several axes together make a test fail, if some are found; `open_guards` checks larger sizes without a run."""
    ranges = {symbol: (least, min(most, LARGEST_RUN)) for symbol, (least, most) in axes.ranges.items() if symbol in test.free_symbols}
    setting = axes.clamp({**axes.example, **(decide(test, ranges, axes.conditions).counterexample or {})})
    if len(ranges) > 1 and fails(test, setting):
        yield setting
